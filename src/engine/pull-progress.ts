// How far the images are that machines wait for.

/** In their order; a pull has some of them. `waiting`: other pulls come first. */
export const pullStages = ['waiting', 'downloading', 'unpacking', 'building'] as const
export type PullStage = (typeof pullStages)[number]

export type PullProgress = {
  /** The machines that wait for this image. */
  machines: string[]
  stage: PullStage
  /** How long it has been in this stage. */
  ageMs: number
  /** Of a download. */
  bytes: { done: number; total: number } | null
  /** The newest lines of a build, oldest first: names of packages and steps, nothing of this host or of a team. */
  lines: string[]
}

/** Gets all pulls that machines wait for. */
export type OnPulls = (pulls: PullProgress[]) => void

/** The longest line, and how many are kept of a build. */
export const PULL_LINE_LENGTH = 160
export const PULL_LINES = 20
