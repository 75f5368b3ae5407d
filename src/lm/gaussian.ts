/** Gaussian samples by Box–Muller. */

/** `size` independent samples of N(0, deviation²) from a source of uniforms in [0, 1). */
export function gaussian(random: () => number, size: number, deviation: number): Float32Array {
  const samples = new Float32Array(size);
  for (let i = 0; i < size; i += 2) {
    const radius = deviation * Math.sqrt(-2 * Math.log(1 - random()));
    const angle = 2 * Math.PI * random();
    samples[i] = radius * Math.cos(angle);
    if (i + 1 < size) samples[i + 1] = radius * Math.sin(angle);
  }
  return samples;
}
