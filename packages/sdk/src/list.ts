// Paginated lists: `for await` reads all pages, `page` reads one, `all` or `await` collects them.

import type { CallOptions } from './transport.ts'

export type Page<T> = {
  items: T[]
  /** For the page after this one; null when there is none. */
  next: string | null
}

export type List<T> = AsyncIterable<T> & {
  /** `await` of a list is all of its items. */
  then: <Read = T[], Failed = never>(
    onRead?: ((items: T[]) => Read | PromiseLike<Read>) | null,
    onFailed?: ((reason: unknown) => Failed | PromiseLike<Failed>) | null,
  ) => Promise<Read | Failed>
  page: (cursor?: string | null) => Promise<Page<T>>
  all: () => Promise<T[]>
}

export type ListOptions = CallOptions & {
  /** Of a page. */
  limit?: number | undefined
}

export function listOf<T>(read: (cursor: string | undefined) => Promise<Page<T>>): List<T> {
  const list: List<T> = {
    page: async (cursor) => await read(cursor ?? undefined),
    all: async () => {
      const items: T[] = []
      for await (const item of list) items.push(item)
      return items
    },
    // oxlint-disable-next-line unicorn/no-thenable -- it is what `await` means of a list
    then: (onRead, onFailed) => list.all().then(onRead, onFailed),
    async *[Symbol.asyncIterator]() {
      for (let page = await read(undefined); ; page = await read(page.next)) {
        yield* page.items
        if (page.next === null) return
      }
    },
  }
  return list
}
