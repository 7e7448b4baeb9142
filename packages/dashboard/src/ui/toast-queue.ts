// The queue of messages for the toast box, which is loaded with the first message.

import type { Explained } from '../api/explain.ts'

export type Toast = {
  title: string
  description?: string
  type?: 'error'
  timeout: number
  priority?: 'high'
  /** Where the way out is, or what was made: a page below the team's address, or the page of a unit. */
  data?: NonNullable<Explained['link']> | { unit: string; text: string }
}

const waiting: Toast[] = []
let show: ((toast: Toast) => void) | null = null
let isWanted = false
const watchers = new Set<() => void>()

export function addToast(toast: Toast): void {
  if (show) return show(toast)
  waiting.push(toast)
  isWanted = true
  for (const watcher of watchers) watcher()
}

/** For what shows them. Returns what ends that. */
export function showToastsWith(shower: (toast: Toast) => void): () => void {
  show = shower
  for (const toast of waiting.splice(0)) shower(toast)
  return () => {
    show = null
  }
}

/** Whether there has been a message. */
export const areToastsWanted = () => isWanted

export function onToastsWanted(watcher: () => void): () => void {
  watchers.add(watcher)
  return () => watchers.delete(watcher)
}
