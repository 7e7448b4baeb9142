// A template is an image: the name of one that is built in, or a reference such as `node:22`.

import { notFound } from '../../../contract/errors.ts'
import { builtInRegistry, imagePattern } from '../../../contract/image-reference.ts'

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
