// The memory stores and skills of the control plane in memory (managed-agents.ts), for those who have a token of an item.

import { createHash, randomUUID } from 'node:crypto'
import { tar } from './tar.ts'

type Memory = { id: string; type: 'memory'; path: string; content: string; content_sha256: string }

/** By store, and by path within it. */
export type Stores = Map<string, Map<string, Memory>>

type Answer = { status: number; body: unknown }

const refused = (status: number): Answer => ({
  status,
  body: { type: 'error', error: { type: 'refused', message: 'no' } },
})
const given = (body: unknown): Answer => ({ status: 200, body })

export function remember(stores: Stores, store: string, path: string, content: string): Memory {
  const memories = stores.get(store) ?? new Map<string, Memory>()
  stores.set(store, memories)
  const id = memories.get(path)?.id ?? `mem_${randomUUID()}`
  const content_sha256 = createHash('sha256').update(content).digest('hex')
  const memory: Memory = { id, type: 'memory', path, content, content_sha256 }
  memories.set(path, memory)
  return memory
}

/** A call below /v1/memory_stores/{store}/memories. */
export function answerMemories(
  stores: Stores,
  { method, store, id, body }: { method: string; store: string; id: string | undefined; body: string },
): Answer {
  const all = [...(stores.get(store)?.values() ?? [])]
  if (id === undefined && method === 'GET') return given({ data: all, next_page: null })
  const known = all.find((memory) => memory.id === id)
  if (id !== undefined && !known) return refused(404)
  if (method === 'GET') return given(known)
  if (method === 'DELETE') {
    stores.get(store)?.delete(known?.path ?? '')
    return given({ id, type: 'memory_deleted' })
  }
  const {
    path = known?.path ?? '',
    content,
    precondition,
  } = JSON.parse(body) as {
    path?: string
    content: string
    precondition?: { content_sha256: string }
  }
  if (precondition && precondition.content_sha256 !== known?.content_sha256) return refused(409)
  return given(remember(stores, store, path, content))
}

/** What each skill has to read. */
export const SKILL_TEXT = 'How to do it.\n'

/** A call below /v1/skills/{skill}/versions/{version}: about it, or its archive. */
export function answerSkill(skill: string, version: string, part: string | undefined): Answer | Buffer {
  if (part === 'content') return tar([{ name: `${skill}/SKILL.md`, content: SKILL_TEXT }])
  return given({ id: version, type: 'skill_version', name: skill, skill_id: skill, version })
}
