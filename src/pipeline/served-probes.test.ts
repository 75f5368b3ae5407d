/** Which probes are served with which configuration; nothing of a model is read. */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ProbeCard } from '../probe/probe-file.js';
import { temporaryFolder } from '../../tests/tiny-checkpoint.js';
import { loadConfig } from './config-file.js';
import { packageRoot } from './paths.js';
import { findProbes } from './served-probes.js';

const SHIPPED = join(packageRoot(), 'probes/azr-micro/probe-0');
const micro = (...settings: string[]) => loadConfig('pipelines/azr-micro.yaml', settings);

/** A probe like the shipped one, whose card says something else. */
function probe(change: Readonly<Record<string, unknown>> = {}, folder = temporaryFolder()): string {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, 'probe-0');
  copyFileSync(`${SHIPPED}.safetensors`, `${path}.safetensors`);
  const card = JSON.parse(readFileSync(`${SHIPPED}.json`, 'utf8')) as object;
  writeFileSync(`${path}.json`, JSON.stringify({ ...card, ...change }));
  return path;
}

describe('a probe', () => {
  it('that ships is for the band and the tasks of the pipeline that ships', () => {
    const shipped = { probes: [{ path: `${SHIPPED}.safetensors`, name: 'probe-0' }], warnings: [] };
    expect(findProbes([SHIPPED], micro())).toEqual(shipped);
    expect(findProbes([`${SHIPPED}.safetensors`], micro())).toEqual(shipped);
  });

  it('of another band is refused', () => {
    expect(() => findProbes([SHIPPED], micro('band={min: 4, max: 6, of: 8}'))).toThrow(
      `--probe ${SHIPPED} was trained for 1 to 3 passes of 8, band is 4 to 6 of 8: give a probe of that band, or set band={min: 1, max: 3, of: 8}`,
    );
    expect(() => findProbes([SHIPPED], micro('band={min: 1, max: 3, of: 16}'))).toThrow('band is 1 to 3 of 16');
  });

  it('of other types of task, or another notation, is refused; of more types it is not', () => {
    expect(() => findProbes([SHIPPED], micro('domain.types=[code_i]'))).toThrow(
      `--probe ${SHIPPED} was trained on code_o in doctest notation, the configuration has code_i in doctest notation: ` +
        'give a probe trained on those, or set domain.types=[code_o] and domain.notation=doctest',
    );
    expect(() => findProbes([SHIPPED], micro('domain.types=[code_o, code_f]'))).toThrow(
      'has code_o, code_f in doctest',
    );
    expect(() => findProbes([SHIPPED], micro('domain.notation=fenced'))).toThrow('has code_o in fenced notation');
    const both = probe({ domain: { types: ['code_i', 'code_o'], notation: 'doctest' } });
    expect(findProbes([both], micro()).warnings).toEqual([]);
  });

  it('whose card says nothing of its tasks is taken with a warning', () => {
    const silent = probe({ domain: undefined });
    expect(findProbes([silent], micro()).warnings).toEqual([
      `the card of --probe ${silent} does not say what tasks it was trained on: see that they were code_o in doctest notation`,
    ]);
  });

  it('that is no better than chance, or than what needs no model, is taken with a warning', () => {
    const card = JSON.parse(readFileSync(`${SHIPPED}.json`, 'utf8')) as ProbeCard;
    const auroc = { value: 0.43, interval: [0.35, 0.52] as [number, number] };
    const weak = probe({ heldOut: { ...card.heldOut, auroc } });
    expect(findProbes([weak], micro()).warnings).toEqual([
      `--probe ${weak} is no better than chance: AUROC 0.430 (0.350–0.520) on 318 labels`,
      `--probe ${weak} is below length alone: AUROC 0.430 against 0.603`,
      `--probe ${weak} is below token n-grams alone: AUROC 0.430 against 0.795`,
    ]);
  });

  it('is given once, by whatever name', () => {
    expect(() => findProbes([SHIPPED, `${SHIPPED}.safetensors`], micro())).toThrow(
      `--probe ${SHIPPED}.safetensors is given twice, first as ${SHIPPED}; give each probe once`,
    );
    expect(() => findProbes([SHIPPED, SHIPPED], micro())).toThrow(`--probe ${SHIPPED} is given twice; give each`);
    const copy = probe();
    expect(() => findProbes([SHIPPED, copy], micro())).toThrow(`--probe ${copy} is given twice, first as ${SHIPPED}`);
  });

  it('is named by its file, its card or what both are called; a folder says what it holds', () => {
    for (const ending of ['', '.safetensors', '.json']) {
      expect(findProbes([`${SHIPPED}${ending}`], micro()).probes).toHaveLength(1);
    }
    expect(() => findProbes(['probes/azr-micro'], micro())).toThrow(
      '--probe probes/azr-micro is a folder of probes: probe-0; give one of its probes, such as probes/azr-micro/probe-0',
    );
    expect(() => findProbes(['probes/none'], micro())).toThrow('--probe probes/none.safetensors does not exist');
  });

  it('of the name of another is called by its file', () => {
    const other = probe({ weightsSha256: 'f'.repeat(64) });
    expect(findProbes([SHIPPED, other], micro()).probes.map(({ name }) => name)).toEqual([SHIPPED, other]);
  });
});
