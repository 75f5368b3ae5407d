/** Documents of the micro-world for a model of any kind: its sampled tasks, written and asked as the configuration's domain has it. */
import type { CodeTask } from '../../domain/azr/index.js';
import type { Domain } from '../../domain/domain.js';
import { deriveSeed } from '../../metrics/random.js';
import { sampleCorpus } from '../micro-world/corpus.js';
import { readDocument, sampleFunctionQuestions, shownPairs } from '../micro-world/documents.js';
import type { Evaluate } from '../micro-world/evaluation.js';
import { dealOut } from '../propose.js';
import type { TextDocument } from './documents.js';

/** Whose documents: a generator learns to write tasks, a solver to answer them. */
export const WARM_START_ROLES = ['generator', 'solver'] as const;
export type WarmStartRole = (typeof WARM_START_ROLES)[number];

export interface MicroWorldRequest {
  readonly role: WarmStartRole;
  readonly count: number;
  readonly seed: number;
  readonly evaluate: Evaluate;
  readonly onProgress: (done: number) => void;
}

/** In equal shares of the domain's types; the two roles of one seed have different ones. */
export async function microWorldDocuments(
  domain: Domain<CodeTask>,
  { role, count, seed, evaluate, onProgress }: MicroWorldRequest,
): Promise<TextDocument[]> {
  const documents: TextDocument[] = [];
  for (const { kind, size } of dealOut(count, domain.kinds)) {
    const before = documents.length;
    const request = {
      seed: deriveSeed(seed, `warm start of the ${role}, ${kind}`, 0),
      count: size,
      evaluate,
      onProgress: (done: number) => onProgress(before + Math.min(done, size)),
    };
    for (const [i, task] of (await tasksOf(kind, request)).entries()) {
      const prompt =
        role === 'generator' ? domain.prompt(kind, deriveSeed(seed, 'warm start prompt', i)) : domain.question(task);
      const completion = role === 'generator' ? domain.writeTask(task) : domain.writeAnswer(task);
      documents.push({ prompt, completion, where: `${kind} document ${i + 1} of the micro-world` });
    }
  }
  return documents;
}

async function tasksOf(kind: string, request: Parameters<typeof sampleCorpus>[0]): Promise<CodeTask[]> {
  if (kind !== 'code_f') {
    const type = kind as 'code_o' | 'code_i';
    return (await sampleCorpus(request)).map((document) => ({ type, ...readDocument(document) }));
  }
  return (await sampleFunctionQuestions(request)).map((question) => {
    const pairs = shownPairs(question);
    return {
      type: 'code_f',
      snippet: question.output.trimEnd(),
      inputs: pairs.map(([input]) => input),
      outputs: pairs.map(([, output]) => output),
      message: '',
      shown: pairs.length,
    };
  });
}
