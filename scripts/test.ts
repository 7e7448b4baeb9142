// `npm test`: runs the fast tier beside the host tier with vitest, then prints where the time went, what failed, and one
// line with the counts.
// Failures come last, because logs are often read from the end or truncated.
// A file with a failed test runs once more, alone, after everything else. A test that fails both times
// has failed. A test that passes the second time is reported as flaky: it depends on what ran at the same time.
// Usage: node scripts/test.ts [fast|host|deep] [vitest's name filters…]
//        node scripts/test.ts deep --minutes N    as many files as fit, one at a time (test/support/time-budget.ts)

import { performance } from 'node:perf_hooks'
import { parseArgs } from 'node:util'
import type { Reporter, TestCase, TestModule, Vitest } from 'vitest/node'
import { createVitest, startVitest } from 'vitest/node'
import { isRunBeside, report, runBeside } from '../test/support/run-beside.ts'
import { inSeededOrder, nextThatFits } from '../test/support/time-budget.ts'

const SLOWEST_SHOWN = 25
const DAY_MS = 86_400_000
/** Of the message of a failure. Its whole, with the place in the code, is where vitest printed it. */
const LINES_OF_FAILURE = 12
/** With more failed files than this something is broken, and a second run only takes time. */
const FILES_RUN_AGAIN = 12
/** A test that is under way when the time is over may end by itself for as long, so that it takes its units along. */
const GRACE_MS = 180_000

/** `npm test` runs all but `deep`, which takes some hours: long matrices, herds and bombs. */
const allTiers = ['fast', 'host', 'deep']

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
type TierOutcome = { tier: string; first: Outcome }

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { minutes: { type: 'string' } },
})
const [tier, ...filters] = positionals
const minutes = values.minutes === undefined ? null : Number(values.minutes)
if (minutes !== null && (tier !== 'deep' || !(minutes > 0))) {
  console.error(
    'Only the deep tier takes --minutes, and at least one of them: node scripts/test.ts deep --minutes 40.',
  )
  process.exit(1)
}
if (tier !== undefined && !allTiers.includes(tier)) {
  console.error(
    `There is no tier "${tier}": it is one of ${allTiers.join(', ')}; without one all but deep run.`,
  )
  process.exit(1)
}

/** `npm test` runs the same every day. The deep tier draws by the day; a failure can be met again by its seed. */
process.env.BERTH_TEST_SEED ??= tier === 'deep' ? `${Math.floor(Date.now() / DAY_MS)}` : '0'
if (tier === 'deep') console.log(`What is drawn is drawn by BERTH_TEST_SEED=${process.env.BERTH_TEST_SEED}.`)

const count = { passed: 0, skipped: 0 }
const failures: Failures = new Map()
const flaky: Failures = new Map()
const notFinished: string[] = []

if (minutes !== null) await runWithin(minutes * 60_000, filters)
else if (tier !== undefined && isRunBeside()) await report(await runTier(tier, filters))
const outcomes = minutes !== null ? [] : await runTiers()
for (const { first } of outcomes) {
  count.passed += first.passed.size
  count.skipped += first.skipped
}
const runAgain = outcomes.map(({ tier: name, first }) => ({
  tier: name,
  files: [...first.failedFiles],
  first,
}))
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

finish()

/** Prints what broke and the line with the counts, and ends. */
function finish(): never {
  for (const [name, messages] of flaky)
    console.log(`\nFlaky, passed alone: ${[name, ...messages].join('\n    ')}`)
  for (const file of notFinished) console.log(`\nNot finished, the time was over: ${file}`)
  for (const [name, messages] of failures) console.log(`\nFailed: ${[name, ...messages].join('\n    ')}`)
  const skipped = count.skipped > 0 ? `, ${count.skipped} skipped` : ''
  const unsteady = flaky.size > 0 ? `, ${flaky.size} flaky` : ''
  const open = notFinished.length > 0 ? `, ${notFinished.length} not finished` : ''
  console.log(`\n${count.passed} passed, ${failures.size} failed${skipped}${unsteady}${open}`)
  // What a test left open must not keep the run from ending; the leak checks of the tests report it.
  process.exit(failures.size > 0 || (count.passed === 0 && notFinished.length === 0) ? 1 : 0)
}

async function runTiers(): Promise<TierOutcome[]> {
  if (tier !== undefined) return [{ tier, first: await runTier(tier, filters) }]
  console.log('The fast tier runs beside the host tier. What it says comes when both have ended.')
  const beside = runBeside<Outcome>(import.meta.filename, ['fast', ...filters])
  const host = { tier: 'host', first: await runTier('host', filters) }
  const { reported, output, end } = await beside
  console.log(output)
  if (reported !== null) return [{ tier: 'fast', first: reported }, host]
  failures.set('the fast tier', [end])
  return [host]
}

/**
 * Runs files of the deep tier one after another, in an order that the seed draws, and begins only what is expected to
 * end in time. A file that does not is cancelled: what it has proven counts, and the rest is not a failure.
 */
async function runWithin(budgetMs: number, paths: string[]): Promise<void> {
  const endsAt = performance.now() + budgetMs
  let left = inSeededOrder(await filesOf('deep', paths), Number(process.env.BERTH_TEST_SEED))
  for (;;) {
    const file = nextThatFits(left, (endsAt - performance.now()) / 1000)
    if (file === null) break
    left = left.filter((other) => other !== file)
    const outcome = await runTier('deep', [file], { alone: true, endsAt })
    count.passed += outcome.passed.size
    count.skipped += outcome.skipped
    for (const [test, messages] of outcome.failures) failures.set(test, messages)
  }
  console.log(`\nNot begun, for want of time: ${left.length} files of the deep tier.`)
}

async function filesOf(name: string, paths: string[]): Promise<string[]> {
  const vitest = await createVitest('test', { project: [name], watch: false })
  const specifications = await vitest.globTestSpecifications(paths)
  await vitest.close()
  const root = `${vitest.config.root}/`
  return [...new Set(specifications.map(({ moduleId }) => moduleId.replace(root, '')))]
}

/** Cancels the run when its time is over; a test that then does not end takes the whole command with it. */
function watchTime(vitest: Vitest, file: string, endsAt: number): () => void {
  let last: NodeJS.Timeout | undefined
  const first = setTimeout(() => {
    notFinished.push(file)
    void vitest.cancelCurrentRun('keyboard-input')
    last = setTimeout(finish, GRACE_MS)
  }, endsAt - performance.now())
  return () => {
    clearTimeout(first)
    clearTimeout(last)
  }
}

async function runTier(
  name: string,
  paths: string[],
  { alone = false, endsAt = null }: { alone?: boolean; endsAt?: number | null } = {},
): Promise<Outcome> {
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
  let stopWatching = () => {}
  const onInit: Reporter['onInit'] = (started) => {
    if (endsAt !== null) stopWatching = watchTime(started, paths.join(' '), endsAt)
  }
  const vitest = await startVitest('test', paths, {
    project: [name],
    watch: false,
    passWithNoTests: true,
    reporters: ['default', { onInit, onTestRunEnd }],
    ...(alone ? { fileParallelism: false } : {}),
  })
  stopWatching()
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
    // Its file was cancelled before it began.
    else if (state === 'pending') continue
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
