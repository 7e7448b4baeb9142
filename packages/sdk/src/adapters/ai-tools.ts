// Tools of the AI SDK for one unit: what a model runs and writes stays in it.

import { type Tool, tool } from 'ai'
import { z } from 'zod'
import type { DirectoryEntry, ExecResult, FileWritten } from '../contract.ts'
import type { Unit } from '../unit.ts'

const path = z.string().startsWith('/').describe('An absolute path in the sandbox.')

export type UnitTools = {
  run: Tool<{ command: string; cwd?: string | undefined }, ExecResult>
  write_file: Tool<{ path: string; text: string }, FileWritten>
  read_file: Tool<{ path: string }, string>
  list_directory: Tool<{ path: string }, DirectoryEntry[]>
  publish: Tool<{ port: number }, string>
}

/** Tools for `generateText`, `streamText` and agents. A failed call is told to the model, in the words of the service. */
export const unitTools = (unit: Unit): UnitTools => ({
  run: tool({
    description: 'Runs a shell command in the sandbox and answers its exit code and output.',
    inputSchema: z.object({ command: z.string(), cwd: path.optional() }),
    execute: async ({ command, cwd }, { abortSignal }) =>
      await unit.exec(command, { cwd, signal: abortSignal }),
  }),
  write_file: tool({
    description: 'Writes a text file, with the directories on the way.',
    inputSchema: z.object({ path, text: z.string() }),
    execute: async ({ path: at, text }, { abortSignal }) =>
      await unit.files.write(at, text, { signal: abortSignal }),
  }),
  read_file: tool({
    description: 'Answers the text of a file.',
    inputSchema: z.object({ path }),
    execute: async ({ path: at }, { abortSignal }) => await unit.files.readText(at, { signal: abortSignal }),
  }),
  list_directory: tool({
    description: 'Answers what is in a directory.',
    inputSchema: z.object({ path }),
    execute: async ({ path: at }, { abortSignal }) =>
      await unit.files.list(at, { signal: abortSignal }).all(),
  }),
  publish: tool({
    description: 'Publishes a port of the sandbox and answers its URL, for those who have it.',
    inputSchema: z.object({ port: z.int().min(1).max(65_535) }),
    execute: async ({ port }, { abortSignal }) => await unit.url(port, { signal: abortSignal }),
  }),
})
