// `npm test`: runs every tier with vitest, then prints where the time went, what failed, and one line with the counts.
// Failures come last, because logs are often read from the end or truncated.
// A file with a failed test runs once more, alone, after everything else. A test that fails both times
// has failed. A test that passes the second time is reported as flaky: it depends on what ran at the same time.
// Usage: node scripts/test.ts [fast|simulation|host|deep] [vitest's name filters…]

import { performance } from 'node:perf_hooks'
import type { Reporter, TestCase, TestModule } from 'vitest/node'
import { startVitest } from 'vitest/node'
import { TURNS_VARIABLE } from '../test/support/turns.ts'

const SLOWEST_SHOWN = 25
const DAY_MS = 86_400_000
/** Of the message of a failure. Its whole, with the place in the code, is where vitest printed it. */
const LINES_OF_FAILURE = 12
/** With more failed files than this something is broken, and a second run only takes time. */
const FILES_RUN_AGAIN = 12

/** What `npm test` runs. `deep` takes some hours: long matrices, herds and bombs. */
const usualTiers = ['fast', 'simulation', 'host']
const allTiers = [...usualTiers, 'deep']

/** By full name: messages. A suite, a file or an uncaught error that breaks outside a test has an entry too. */
type Failures = Map<string, string[]>
type Outcome = {
  passed: Set<string>
  skipped: number
  failures: Failures
  failedFiles: Set<string>
  /** Files that ran, and in which nothing broke. */
  cleanFiles: Set<string>
}

const [tier, ...filters] = process.argv.slice(2)
if (tier !== undefined && !allTiers.includes(tier)) {
  console.error(
    `There is no tier "${tier}": it is one of ${allTiers.join(', ')}; without one all but deep run.`,
  )
  process.exit(1)
}

/** Another one each day, so that a failure can be met again by its day's seed. */
process.env.BERTH_TEST_SEED ??= `${Math.floor(Date.now() / DAY_MS)}`
console.log(`Where a part of a matrix runs, it is the one of BERTH_TEST_SEED=${process.env.BERTH_TEST_SEED}.`)

const count = { passed: 0, skipped: 0 }
const failures: Failures = new Map()
const flaky: Failures = new Map()
const runAgain: { tier: string; files: string[]; first: Outcome }[] = []

// What is asked for by name runs; of a whole tier the long files take turns.
process.env[TURNS_VARIABLE] = filters.length === 0 ? 'yes' : 'no'

for (const name of tier === undefined ? usualTiers : [tier]) {
  const first = await runTier(name, filters)
  count.passed += first.passed.size
  count.skipped += first.skipped
  runAgain.push({ tier: name, files: [...first.failedFiles], first })
}
const isFew = runAgain.reduce((sum, { files }) => sum + files.length, 0) <= FILES_RUN_AGAIN
for (const { tier: name, files, first } of runAgain) {
  const second = isFew && files.length > 0 ? await runTier(name, files, { alone: true }) : null
  for (const [test, messages] of first.failures) {
    // A suite that breaks outside its tests never passes by name: nothing of its file may break any more.
    const [file = ''] = test.split(' > ')
    if (second?.passed.has(test) || second?.cleanFiles.has(file)) flaky.set(test, messages)
    else failures.set(test, messages)
  }
  for (const [test, messages] of second?.failures ?? []) failures.set(test, messages)
  for (const test of second?.passed ?? []) if (!first.passed.has(test)) count.passed += 1
}

for (const [name, messages] of flaky)
  console.log(`\nFlaky, passed alone: ${[name, ...messages].join('\n    ')}`)
for (const [name, messages] of failures) console.log(`\nFailed: ${[name, ...messages].join('\n    ')}`)
const skipped = count.skipped > 0 ? `, ${count.skipped} skipped` : ''
const unsteady = flaky.size > 0 ? `, ${flaky.size} flaky` : ''
console.log(`\n${count.passed} passed, ${failures.size} failed${skipped}${unsteady}`)
// What a test left open must not keep the run from ending; the leak checks of the tests report it.
process.exit(failures.size > 0 || count.passed === 0 ? 1 : 0)

async function runTier(name: string, paths: string[], { alone = false } = {}): Promise<Outcome> {
  const startedAt = performance.now()
  const outcome: Outcome = {
    passed: new Set(),
    skipped: 0,
    failures: new Map(),
    failedFiles: new Set(),
    cleanFiles: new Set(),
  }
  const onTestRunEnd: Reporter['onTestRunEnd'] = (modules, errors) => {
    for (const module of modules) readModule(module, outcome)
    for (const error of errors) fail(outcome, 'an uncaught error', [error])
    showSlowest(modules)
  }
  const vitest = await startVitest('test', paths, {
    project: [name],
    watch: false,
    passWithNoTests: true,
    reporters: ['default', { onTestRunEnd }],
    ...(alone ? { fileParallelism: false } : {}),
  })
  await vitest.close()
  console.log(
    `The ${name} tier took ${seconds(performance.now() - startedAt)}${alone ? ' to run again' : ''}.`,
  )
  return outcome
}

function readModule(module: TestModule, outcome: Outcome): void {
  const file = module.relativeModuleId
  const broken: [string, readonly { message: string }[]][] = []
  for (const test of module.children.allTests()) {
    const { state, errors } = test.result()
    if (state === 'passed') outcome.passed.add(nameOf(test))
    else if (state === 'skipped') outcome.skipped += 1
    else broken.push([nameOf(test), errors ?? []])
  }
  // A file or a suite may break outside its tests.
  if (module.errors().length > 0) broken.push([file, module.errors()])
  for (const suite of module.children.allSuites())
    if (suite.errors().length > 0) broken.push([`${file} > ${suite.fullName}`, suite.errors()])
  for (const [name, errors] of broken) fail(outcome, name, errors)
  if (broken.length > 0) outcome.failedFiles.add(file)
  else if (module.children.allTests('passed').next().done === false) outcome.cleanFiles.add(file)
}

function nameOf(test: TestCase): string {
  return `${test.module.relativeModuleId} > ${test.fullName}`
}

function fail(outcome: Outcome, name: string, errors: readonly { message: string }[]): void {
  const messages = errors.flatMap(({ message }) => message.split('\n').slice(0, LINES_OF_FAILURE))
  outcome.failures.set(name, [...(outcome.failures.get(name) ?? []), ...messages])
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
