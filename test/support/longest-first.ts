// The order of the test files: the longest first, so that no long one runs alone at the end. How long each took is in
// test/durations.json, in seconds, from the end of a whole run ("Where the time went"); a file it does not name counts
// as a short one.

import { readFileSync } from 'node:fs'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

const durations = JSON.parse(readFileSync(new URL('../durations.json', import.meta.url), 'utf8')) as Record<
  string,
  number
>

export class LongestFirst extends BaseSequencer {
  override sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const secondsOf = ({ moduleId, project }: TestSpecification) =>
      durations[moduleId.slice(project.vitest.config.root.length + 1)] ?? 0
    return Promise.resolve(files.toSorted((a, b) => secondsOf(b) - secondsOf(a)))
  }
}
