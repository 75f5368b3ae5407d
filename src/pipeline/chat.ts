/** Whether a model is asked in a turn of its chat, by its setting and by how the domain writes. */
import type { Domain } from '../domain/domain.js';
import type { ChatSetting } from '../lm/tokenizer.js';

/** `auto` is what the notation says: a text that is to be gone on with is never put into a turn by itself. */
export function chatOf(
  { chat }: { readonly chat: ChatSetting },
  domain: Pick<Domain<never>, 'asksInChat'>,
): ChatSetting {
  return chat === 'auto' && !domain.asksInChat ? 'never' : chat;
}
