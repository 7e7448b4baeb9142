// How many gateway processes serve the visits of one host.

import { availableParallelism } from 'node:os'

/** Each has about 40 MB of memory of its own, and up to 20 connections to the database are shared among them. */
export const MAX_GATEWAY_WORKERS = 16
/** Without a setting: the cores are also for units, server and engine. */
const MAX_BY_DEFAULT = 8

/** By default: half of the cores, and one where there are two. */
export function defaultGatewayWorkers(cores = availableParallelism()): number {
  return Math.min(Math.max(1, Math.floor(cores / 2)), MAX_BY_DEFAULT)
}
