/** Work on many items at once, but no more than a few, with the results in order. */

/**
 * `work` on every item, at most `width` at a time, results in the items' order. The first failure stops further items from
 * being started and is thrown once those under way have ended.
 */
export async function mapBounded<Item, Result>(
  items: Iterable<Item> | AsyncIterable<Item>,
  width: number,
  work: (item: Item, index: number) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const running = new Set<Promise<void>>();
  let failure: { readonly error: unknown } | null = null;
  let index = 0;
  try {
    for await (const item of items) {
      const position = index++;
      const task = work(item, position).then(
        (result) => {
          results[position] = result;
          running.delete(task);
        },
        (error: unknown) => {
          failure ??= { error };
          running.delete(task);
        },
      );
      running.add(task);
      if (running.size >= width) await Promise.race(running);
      if (failure !== null) break;
    }
  } finally {
    await Promise.all(running);
  }
  if (failure !== null) throw (failure as { readonly error: unknown }).error;
  return results;
}
