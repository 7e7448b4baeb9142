// Tools of LangChain for one unit: what a model runs and writes stays in it.

import type { Unit } from '@berth/sdk'
import { type StructuredToolInterface, tool } from '@langchain/core/tools'
import { z } from 'zod'

const path = z.string().startsWith('/').describe('An absolute path in the unit.')

export const unitTools = (unit: Unit): StructuredToolInterface[] => [
  tool(
    async ({ command, cwd }: { command: string; cwd?: string | undefined }, { signal }) =>
      JSON.stringify(await unit.exec(command, { cwd, signal })),
    {
      name: 'run',
      description: 'Runs a shell command in the sandbox and answers its exit code and output.',
      schema: z.object({ command: z.string(), cwd: path.optional() }),
    },
  ),
  tool(
    async (asked: { path: string; text: string }, { signal }) =>
      JSON.stringify(await unit.files.write(asked.path, asked.text, { signal })),
    {
      name: 'write_file',
      description: 'Writes a text file, with the directories on the way.',
      schema: z.object({ path, text: z.string() }),
    },
  ),
  tool(async (asked: { path: string }, { signal }) => await unit.files.readText(asked.path, { signal }), {
    name: 'read_file',
    description: 'Answers the text of a file.',
    schema: z.object({ path }),
  }),
  tool(async ({ port }: { port: number }, { signal }) => await unit.url(port, { signal }), {
    name: 'publish',
    description: 'Publishes a port of the sandbox and answers its URL, for those who have it.',
    schema: z.object({ port: z.int().min(1).max(65_535) }),
  }),
]
