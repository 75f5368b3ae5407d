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

export function standardisationOf(matrix: Matrix): Standardisation {
  const means = columnSums(matrix, (value) => value).map((sum) => sum / matrix.rows);
  const squares = columnSums(matrix, (value, column) => (value - means[column]!) ** 2);
  const sd = Float32Array.from(squares, (sum) => {
    const deviation = Math.sqrt(sum / matrix.rows);
    return deviation > CONSTANT_SD ? deviation : 1;
  });
  return { mean: Float32Array.from(means), sd };
}

function columnSums({ rows, columns, data }: Matrix, term: (value: number, column: number) => number): Float64Array {
  const sums = new Float64Array(columns);
  for (let row = 0, i = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++, i++) sums[column]! += term(data[i]!, column);
  }
  return sums;
}

/** No change: for features whose units are to be kept. */
export function identityStandardisation(columns: number): Standardisation {
  return { mean: new Float32Array(columns), sd: new Float32Array(columns).fill(1) };
}

export function standardise({ rows, columns, data }: Matrix, { mean, sd }: Standardisation): Matrix {
  const scaled = new Float32Array(data.length);
  for (let row = 0, i = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++, i++) scaled[i] = (data[i]! - mean[column]!) / sd[column]!;
  }
  return { rows, columns, data: scaled };
}
