// Patches of a model, applied to files of a unit.

import { applyDiff } from '@openai/agents/utils'
import type { Editor } from '@openai/agents'
import type { Unit } from '../unit.ts'
import { isMissingFile } from './paths.ts'

/** @param user Whose new files are. */
export function editorOf(unit: Unit, at: (path: string) => string, user: string | undefined): Editor {
  const write = async (path: string, text: string) =>
    void (await unit.files.writeStream(at(path), new TextEncoder().encode(text), { user }))
  return {
    createFile: async ({ path, diff }) => {
      await write(path, applyDiff('', diff, 'create'))
      return { output: `Created ${path}` }
    },
    updateFile: async ({ path, diff, moveTo }) => {
      const text = await new Response(await unit.files.readStream(at(path))).text()
      await write(path, applyDiff(text, diff))
      if (moveTo !== undefined && moveTo !== path) await unit.files.move(at(path), at(moveTo), { user })
      return { output: `Updated ${moveTo ?? path}` }
    },
    deleteFile: async ({ path }) => {
      try {
        await unit.files.delete(at(path))
        return { output: `Deleted ${path}` }
      } catch (error) {
        if (isMissingFile(error)) return { status: 'failed', output: `There is no file ${path}.` }
        throw error
      }
    },
  }
}
