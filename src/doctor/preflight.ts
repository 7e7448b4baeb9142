// The checks that `npm start` runs first, in a few milliseconds: Berth cannot start without what they require.

import type { Config } from '../config.ts'
import { runCheck } from './check.ts'
import { hostChecks, serverChecks } from './host.ts'
import { kernelChecks } from './kernel.ts'
import { presenceChecks } from './programs.ts'

/** Throws an Error with one sentence for each thing that is missing. */
export async function refuseBrokenHost(config: Config): Promise<void> {
  const sentences: string[] = []
  const ofRole = config.role === 'server' ? serverChecks : [...hostChecks, ...kernelChecks, ...presenceChecks]
  for (const check of ofRole) {
    const finding = await runCheck(check, config)
    if (finding.state === 'fail') sentences.push(`${check.name}: ${finding.detail}. ${finding.advice}`)
  }
  if (sentences.length > 0) throw new Error(sentences.join('\n'))
}
