// The addresses of machines. A machine has one address for its whole life, and a freed address is reused only after
// all others: a peer that still uses it must not soon reach its next owner (reliability I10). The turn survives
// restarts, hence `onTurn`.

import { EngineError } from '../../errors.ts'

export type Addresses = {
  /** Returns a new address. Throws EngineError `host_full` when all are taken. */
  allot(): string
  /** Takes this address. Returns false if it is taken or not a machine's address. */
  claim(address: string): boolean
  free(address: string): void
}

type Options = {
  /** `10.x.0.0/16` */
  subnet: string
  /** Where to continue, as last passed to `onTurn`. */
  turn: number
  onTurn: (turn: number) => void
}

const FIRST = 2 // .0 is the network and .1 the gateway
const END = 0xffff // .255.255 is the broadcast address of the whole

export function createAddresses({ subnet, turn, onTurn }: Options): Addresses {
  const base = subnet.split('.').slice(0, 2).join('.')
  const taken = new Set<number>()
  let next = turn >= FIRST && turn < END ? turn : FIRST

  const advance = () => {
    next = next + 1 < END ? next + 1 : FIRST
    onTurn(next)
  }

  return {
    allot() {
      for (let tried = FIRST; tried < END; tried++) {
        const index = next
        advance()
        if (taken.has(index)) continue
        taken.add(index)
        return `${base}.${index >> 8}.${index & 0xff}`
      }
      throw new EngineError('host_full', 'This host has no free network address left.')
    },
    claim(address) {
      const index = indexOf(base, address)
      if (index === null || taken.has(index)) return false
      taken.add(index)
      return true
    },
    free(address) {
      const index = indexOf(base, address)
      if (index !== null) taken.delete(index)
    },
  }
}

function indexOf(base: string, address: string): number | null {
  const match = /^(\d+\.\d+)\.(\d{1,3})\.(\d{1,3})$/.exec(address)
  if (match?.[1] !== base) return null
  const [high, low] = [Number(match[2]), Number(match[3])]
  const index = high * 256 + low
  return high <= 255 && low <= 255 && index >= FIRST && index < END ? index : null
}

/** The mask of a prefix: 24 is 255.255.255.0. */
export function maskOf(prefix: number): string {
  const ones = 2 ** 32 - 2 ** (32 - prefix)
  return [24, 16, 8, 0].map((shift) => Math.floor(ones / 2 ** shift) % 256).join('.')
}
