// A template is an image: the name of one that is built in, or a reference such as `node:22`. A sandbox of a template that was
// built, or of a snapshot, has a label that says of which.

import { notFound } from '../../../contract/errors.ts'
import { builtInRegistry, imagePattern } from '../../../contract/image-reference.ts'
import type { Unit } from '../../../contract/unit.ts'
import { START } from './start-command.ts'

const BUILT_IN = new RegExp(`^${builtInRegistry.replace('.', '\\.')}/([a-z0-9-]+):`)
/** Of a client that names none. */
export const DEFAULT_TEMPLATE = 'base'
/** As the clients name the image of it. */
const BASE_IMAGE = 'e2bdev/base'
/** Of clients of the code interpreter, and the image that it is. */
export const CODE_TEMPLATE = 'code-interpreter-v1'
const CODE_IMAGE = `${builtInRegistry}/code:1`
const NAME = /^[a-z0-9][a-z0-9-]*$/

/** Throws `not_found` for what can be no image. */
export function imageOf(template: string): string {
  if (template === BASE_IMAGE) return imageOf(DEFAULT_TEMPLATE)
  if (template === CODE_TEMPLATE) return CODE_IMAGE
  if (NAME.test(template)) return `${builtInRegistry}/${template}:latest`
  if (!imagePattern.test(template)) throw notFound('template', template)
  return template
}

export function templateOf(image: string): string {
  if (image === CODE_IMAGE) return CODE_TEMPLATE
  return BUILT_IN.exec(image)?.[1] ?? image
}

const MADE_OF = 'sandboxTemplate'

/** The label of a sandbox that is made of it. */
export function labelOfTemplate(name: string): Record<string, string> {
  return { [MADE_OF]: name }
}

export function templateIn({ image, metadata }: Pick<Unit, 'image' | 'metadata'>): string {
  return metadata[MADE_OF] ?? templateOf(image)
}

/** Whether a label is one of those that say of its template what a sandbox has to know. */
export function isOfTemplate(label: string): boolean {
  return label === MADE_OF || label === START
}

/** What its owner said of a sandbox, without the labels of its template. */
export function ownMetadata({ metadata }: Pick<Unit, 'metadata'>): Record<string, string> {
  return Object.fromEntries(Object.entries(metadata).filter(([name]) => !isOfTemplate(name)))
}

/** Whether it can only be the name of a template, and no reference to an image. */
export function isOnlyName(template: string): boolean {
  return NAME.test(template) && template !== DEFAULT_TEMPLATE && template !== CODE_TEMPLATE
}
