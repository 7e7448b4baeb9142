// Three tiers: `fast` needs no root and runs in parallel; `host` drives real runtimes as root, a few files at a time; `deep` runs
// every matrix whole that the others run in part (test/support/part-of.ts), and what takes an hour. It is not part of `npm test`.
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { LongestFirst } from './test/support/longest-first.ts'

/** A machine that does other things besides must not fail what is right: what is waited for comes much sooner. */
const expect = { poll: { timeout: 30_000 } }

const setupFiles = ['test/support/draw-large.ts']

const onHost = {
  // Units start, wake and sleep within seconds, and within a minute where everything is ten times as slow.
  expect: { poll: { timeout: 60_000 } },
  setupFiles,
  globalSetup: ['test/support/postgres.ts', 'test/support/clear-host.ts', 'test/support/prepared-data.ts'],
  pool: 'forks' as const,
  hookTimeout: 600_000,
}

/** Files of the fast tier that run a part of what they could. */
const inPart = [
  'test/engine/tls.test.ts',
  'src/gateway/http/proxy-request.test.ts',
  'test/api/{fuzz,large-teams}.test.ts',
  'test/coverage/strangers.test.ts',
  'test/dashboard/{keyboard,slips}.test.ts',
]

/** The examples import it as their users do. */
const sdk = fileURLToPath(new URL('packages/sdk/src', import.meta.url))
const alias = [
  { find: /^@berth\/sdk$/, replacement: `${sdk}/index.ts` },
  { find: /^@berth\/sdk\/(.+)$/, replacement: `${sdk}/adapters/$1.ts` },
  // It only passes on what this one has.
  { find: /^@openai\/agents(?=\/|$)/, replacement: '@openai/agents-core' },
]

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        resolve: { alias },
        test: {
          name: 'fast',
          include: [
            'src/**/*.test.ts',
            'test/{api,clients,coverage,dashboard,soak}/**/*.test.ts',
            'test/*.test.ts',
            'test/simulation/reference.test.ts',
            'test/engine/{fake,socket,tls}.test.ts',
          ],
          exclude: ['**/*.{host,deep}.test.ts', 'node_modules/**'],
          pool: 'threads',
          isolate: false,
          setupFiles,
          globalSetup: ['test/support/postgres.ts'],
          // They wait more than they compute; by itself vitest would run one file at a time on two cores.
          maxWorkers: 5,
          expect,
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          ...onHost,
          name: 'host',
          include: ['src/**/*.host.test.ts', 'test/{engine,flows}/**/*.host.test.ts'],
          exclude: ['node_modules/**'],
          // Every file has an instance of its own, and waits a part of its time. More of them only make all of them wait.
          maxWorkers: 2,
          testTimeout: 300_000,
        },
      },
      {
        test: {
          ...onHost,
          name: 'deep',
          include: ['{src,test}/**/*.{deep,host}.test.ts', 'test/simulation/*.test.ts', ...inPart],
          env: { BERTH_TEST_DEEP: 'yes' },
          maxWorkers: 2,
          testTimeout: 3_600_000,
        },
      },
    ],
  },
})
