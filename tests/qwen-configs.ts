/** The published `config.json` of the models of the pipelines for real use. */

const QWEN2_5 = {
  architectures: ['Qwen2ForCausalLM'],
  attention_dropout: 0,
  bos_token_id: 151_643,
  eos_token_id: 151_645,
  hidden_act: 'silu',
  initializer_range: 0.02,
  max_position_embeddings: 32_768,
  model_type: 'qwen2',
  rms_norm_eps: 1e-6,
  rope_theta: 1_000_000,
  torch_dtype: 'bfloat16',
  use_cache: true,
  use_sliding_window: false,
};

/** Qwen/Qwen2.5-3B-Instruct. */
export const QWEN_3B = {
  ...QWEN2_5,
  hidden_size: 2048,
  intermediate_size: 11_008,
  max_window_layers: 70,
  num_attention_heads: 16,
  num_hidden_layers: 36,
  num_key_value_heads: 2,
  sliding_window: 32_768,
  tie_word_embeddings: true,
  vocab_size: 151_936,
};

/** Qwen/Qwen2.5-7B-Instruct. */
export const QWEN_7B = {
  ...QWEN2_5,
  hidden_size: 3584,
  intermediate_size: 18_944,
  max_window_layers: 28,
  num_attention_heads: 28,
  num_hidden_layers: 28,
  num_key_value_heads: 4,
  sliding_window: 131_072,
  tie_word_embeddings: false,
  vocab_size: 152_064,
};
