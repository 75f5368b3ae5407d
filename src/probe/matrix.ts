/** Feature matrices: row-major float32, a row a task. */

export interface Matrix {
  readonly rows: number;
  readonly columns: number;
  /** [rows, columns]. */
  readonly data: Float32Array;
}

/** Mean and population standard deviation of each column; 1 where a column does not vary, so that it standardises to 0. */
export interface Standardisation {
  readonly mean: Float32Array;
  readonly sd: Float32Array;
}

/** A column that varies less than this, in its own units, counts as constant. */
const CONSTANT_SD = 1e-6;

export function takeRows({ columns, data }: Matrix, rows: readonly number[]): Matrix {
  const taken = new Float32Array(rows.length * columns);
  rows.forEach((row, i) => taken.set(data.subarray(row * columns, (row + 1) * columns), i * columns));
  return { rows: rows.length, columns, data: taken };
}

export function standardisationOf({ rows, columns, data }: Matrix): Standardisation {
  const sums = new Float64Array(columns);
  for (let i = 0; i < data.length; i++) sums[i % columns]! += data[i]!;
  const means = sums.map((sum) => sum / rows);
  const squares = new Float64Array(columns);
  for (let i = 0; i < data.length; i++) squares[i % columns]! += (data[i]! - means[i % columns]!) ** 2;
  const sd = Float32Array.from(squares, (sum) => {
    const deviation = Math.sqrt(sum / rows);
    return deviation > CONSTANT_SD ? deviation : 1;
  });
  return { mean: Float32Array.from(means), sd };
}

/** No change: for features whose units are to be kept. */
export function identityStandardisation(columns: number): Standardisation {
  return { mean: new Float32Array(columns), sd: new Float32Array(columns).fill(1) };
}

export function standardise({ rows, columns, data }: Matrix, { mean, sd }: Standardisation): Matrix {
  const scaled = Float32Array.from(data, (value, i) => (value - mean[i % columns]!) / sd[i % columns]!);
  return { rows, columns, data: scaled };
}
