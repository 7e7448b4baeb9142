// One file as its callers know it: of what was written, what a read may find. A write whose answer was lost
// may have happened, or may yet.

export type Register = {
  asked: (write: number, content: string) => void
  answered: (write: number) => void
  /** Where the history is by now; a read begins here. */
  moment: () => number
  /** What is wrong with a read that began then, and found this (null: no file). */
  judge: (readFrom: number, found: string | null) => string[]
  /** Whether a read must find something. */
  isThere: () => boolean
}

type Write = { content: string; askedAt: number; answeredAt: number }

export function createRegister(): Register {
  const writes = new Map<number, Write>()
  let moment = 0
  const sure = (before: number) => [...writes.values()].filter(({ answeredAt }) => answeredAt < before)
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
      const settled = sure(readFrom + 1)
      if (found === null) return settled.length === 0 ? [] : ['a file that was written is not there']
      const isOverwritten = ({ answeredAt }: Write) => settled.some((later) => answeredAt < later.askedAt)
      const possible = [...writes.values()]
        .filter((write) => !isOverwritten(write))
        .map(({ content }) => content)
      return possible.includes(found)
        ? []
        : [`a file holds "${found}" instead of "${possible.join('" or "')}"`]
    },
    isThere: () => sure(Infinity).length > 0,
  }
}
