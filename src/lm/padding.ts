/** Token rows of different lengths as one rectangle. */

/** Token rows, right-padded with 0 to `time`. */
export function padRows(rows: readonly (readonly number[])[], time: number): BigInt64Array {
  const padded = new BigInt64Array(rows.length * time);
  rows.forEach((row, r) => row.forEach((token, t) => (padded[r * time + t] = BigInt(token))));
  return padded;
}
