// `npm test`: every tier through vitest, then where the time went, what failed, and one line with the counts. What
// failed comes last, for many a log is read from its end, or kept in part.
// Usage: node scripts/test.ts [fast|simulation|host] [vitest's name filters…]

import { performance } from 'node:perf_hooks'
import type { Reporter, TestCase, TestModule } from 'vitest/node'
import { startVitest } from 'vitest/node'

const SLOWEST_SHOWN = 12
/** Of the message of a failure. Its whole, with the place in the code, is where vitest printed it. */
const LINES_OF_FAILURE = 12

const allTiers = ['fast', 'simulation', 'host']

const [tier, ...filters] = process.argv.slice(2)
if (tier !== undefined && !allTiers.includes(tier)) {
  console.error(`There is no tier "${tier}": it is one of ${allTiers.join(', ')}; without one all run.`)
  process.exit(1)
}

const count = { passed: 0, failed: 0, skipped: 0 }
const failures: string[] = []
const tiers = tier === undefined ? allTiers : [tier]
for (const name of tiers) await runTier(name)
// Vitest sets the exit code on failures it knows of; no test at all is none of them.
if (count.failed > 0 || count.passed === 0) process.exitCode = 1
for (const failure of failures) console.log(`\nFailed: ${failure}`)
const skipped = count.skipped > 0 ? `, ${count.skipped} skipped` : ''
console.log(`\n${count.passed} passed, ${count.failed} failed${skipped}`)
// What a test left open must not keep the run from ending; the leak checks of the tests report it.
process.exit()

async function runTier(name: string): Promise<void> {
  const startedAt = performance.now()
  const vitest = await startVitest('test', filters, {
    project: [name],
    watch: false,
    passWithNoTests: true,
    reporters: ['default', { onTestRunEnd }],
  })
  await vitest.close()
  console.log(`The ${name} tier took ${seconds(performance.now() - startedAt)}.`)
}

function onTestRunEnd(...[modules, errors]: Parameters<NonNullable<Reporter['onTestRunEnd']>>): void {
  for (const module of modules) {
    for (const test of module.children.allTests()) countTest(test)
    // A file or suite that breaks outside its tests, and an error nobody caught, are failures without a test.
    for (const error of module.errors()) fail(module.relativeModuleId, [error])
    for (const suite of module.children.allSuites())
      for (const error of suite.errors()) fail(`${module.relativeModuleId} > ${suite.fullName}`, [error])
  }
  for (const error of errors) fail('an error that nobody caught', [error])
  showSlowest(modules)
}

function countTest(test: TestCase): void {
  const { state, errors } = test.result()
  if (state === 'pending' || state === 'failed')
    fail(`${test.module.relativeModuleId} > ${test.fullName}`, errors ?? [])
  else count[state] += 1
}

function fail(name: string, errors: readonly { message: string }[]): void {
  count.failed += 1
  const messages = errors.flatMap(({ message }) => message.split('\n').slice(0, LINES_OF_FAILURE))
  failures.push([name, ...messages].join('\n    '))
}

function showSlowest(modules: readonly TestModule[]): void {
  const files = modules
    .map((module) => ({ name: module.relativeModuleId, ms: timeOf(module) }))
    .sort((a, b) => b.ms - a.ms)
  console.log('\nWhere the time went:')
  for (const { name, ms } of files.slice(0, SLOWEST_SHOWN))
    console.log(`  ${seconds(ms).padStart(8)}  ${name}`)
}

function timeOf(module: TestModule): number {
  const { duration, collectDuration, setupDuration, prepareDuration } = module.diagnostic()
  return duration + collectDuration + setupDuration + prepareDuration
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}
