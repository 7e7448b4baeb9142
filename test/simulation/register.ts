// One file as its callers know it: what a read may return after which writes. A write whose answer was lost may have
// taken effect, or may do so later.

export type Register = {
  asked: (write: number, content: string) => void
  answered: (write: number) => void
  /** The present moment of the history; a read begins here. */
  moment: () => number
  /** What is wrong with a read that began then and found this content (null: no file). */
  judge: (readFrom: number, found: string | null) => string[]
  /** Whether a read must find a file. */
  isThere: () => boolean
  /** The contents it may have had since that moment; null when it may not have existed. */
  possibleSince: (moment: number) => (string | null)[]
  /** It had one of these contents before its first write, because it was copied. */
  holds: (before: (string | null)[]) => void
}

type Write = { content: string; askedAt: number; answeredAt: number }

export function createRegister(): Register {
  let before: (string | null)[] = [null]
  const writes = new Map<number, Write>()
  let moment = 0
  const sure = (before: number) => [...writes.values()].filter(({ answeredAt }) => answeredAt < before)
  const possibleSince = (since: number): (string | null)[] => {
    const settled = sure(since + 1)
    const isOverwritten = ({ answeredAt }: Write) => settled.some((later) => answeredAt < later.askedAt)
    const written = [...writes.values()].filter((write) => !isOverwritten(write))
    return [...(settled.length === 0 ? before : []), ...written.map(({ content }) => content)]
  }
  return {
    asked: (write, content) => {
      moment += 1
      writes.set(write, { content, askedAt: moment, answeredAt: Infinity })
    },
    answered: (write) => {
      moment += 1
      const known = writes.get(write)
      if (known) known.answeredAt = moment
    },
    moment: () => moment,
    judge: (readFrom, found) => {
      const possible = possibleSince(readFrom)
      if (possible.includes(found)) return []
      if (found === null) return ['a file that was written is not there']
      return [`a file holds "${found}" instead of "${possible.join('" or "')}"`]
    },
    isThere: () => sure(Infinity).length > 0 || !before.includes(null),
    possibleSince,
    holds: (copied) => {
      before = copied
    },
  }
}
