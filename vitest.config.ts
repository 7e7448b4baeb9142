// Three tiers: `fast` needs no root and runs in parallel; `simulation` draws schedules at random; `host` drives
// real runtimes as root, two files at a time.
import { defineConfig } from 'vitest/config'

/** A machine that does other things besides must not fail what is right: what is waited for comes much sooner. */
const expect = { poll: { timeout: 10_000 } }

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'fast',
          include: [
            'src/**/*.test.ts',
            'test/{api,coverage}/**/*.test.ts',
            'test/*.test.ts',
            'test/engine/{fake,socket}.test.ts',
          ],
          exclude: ['**/*.host.test.ts', 'node_modules/**'],
          pool: 'threads',
          isolate: false,
          expect,
          testTimeout: 30_000,
          hookTimeout: 30_000,
          globalSetup: ['test/support/postgres.ts'],
        },
      },
      {
        test: {
          name: 'simulation',
          expect,
          include: ['test/simulation/*.test.ts'],
          globalSetup: ['test/support/postgres.ts'],
        },
      },
      {
        test: {
          name: 'host',
          expect,
          include: ['src/**/*.host.test.ts', 'test/{engine,flows}/**/*.host.test.ts'],
          globalSetup: ['test/support/postgres.ts'],
          pool: 'forks',
          // Most of the time is spent waiting; every file has an instance of its own.
          maxWorkers: 2,
          testTimeout: 120_000,
          hookTimeout: 600_000,
        },
      },
    ],
  },
})
