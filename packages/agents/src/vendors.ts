// The vendors whose work comes as a leased queue: each is a file behind the interface, and a line here.

import { createClaudeQueue } from './claude.ts'
import type { OpenQueue } from './queue.ts'

type Vendor = {
  open: OpenQueue
  /** Where `berth agents serve` looks for the environment's key without a file. */
  keyVariable: string
}

export const vendors = {
  claude: { open: createClaudeQueue, keyVariable: 'ANTHROPIC_ENVIRONMENT_KEY' },
} as const satisfies Record<string, Vendor>

export type VendorName = keyof typeof vendors

export const isVendor = (name: string): name is VendorName => Object.hasOwn(vendors, name)
