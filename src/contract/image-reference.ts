// Parses an image reference into its canonical form: `node:20` is `docker.io/library/node:20`. All code behind the
// API uses only this form, so that the image checked by a policy is the image pulled (design 3).

import { limits } from './limits.ts'

/** Images built on this host from Debian packages; every policy allows them (design 3). */
export const builtInRegistry = 'berth.local'

const defaultRegistry = 'docker.io'

export type ImageReference = {
  /** The host name that `allowedRegistries` is compared with. */
  registry: string
  repository: string
  /** Null exactly if `digest` is set: a digest identifies the image alone, so a tag beside it is dropped. */
  tag: string | null
  digest: string | null
  canonical: string
}

/**
 * Thrown for text that is not a reference, or that names a host from which no image may come. The message is for the
 * caller.
 */
export class InvalidImageReference extends Error {
  override name = 'InvalidImageReference'
}

/** The pattern of spec 2.1 and 2.3. */
export const imagePattern = /^[a-z0-9][a-z0-9._/-]*(?::[\w.-]+)?(?:@sha256:[a-f0-9]{64})?$/

// The names that registries accept, a subset of the spec's pattern.
const pathPart = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$/
const hostLabel = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/
const tagPattern = /^\w[\w.-]{0,127}$/

/** Names that always resolve to this machine or its network (RFC 6761, 6762, 8375, and those of clouds). */
const privateSuffixes = ['localhost', 'localdomain', 'local', 'internal', 'home.arpa', 'onion', 'invalid']

/** The most characters that the default registry and tag can add. */
const WRITTEN_OUT = 'docker.io/library/:latest'.length

/** Throws InvalidImageReference. A canonical reference is returned unchanged. */
export function parseImageReference(text: string): ImageReference {
  const { min, max } = limits.imageLength
  // The contract limits what a caller sends to `max`; the canonical form can be longer.
  if (text.length < min || text.length > max + WRITTEN_OUT) refuse(`it must have ${min} to ${max} characters`)
  if (!imagePattern.test(text)) {
    refuse('it must look like "node:20" or "ghcr.io/owner/name:tag", in lower case and without a port')
  }
  const [named = '', digest = null] = text.split('@')
  const [path = '', tag = null] = named.split(':')
  const { registry, repository } = splitRegistry(path)
  checkRegistry(registry)
  checkRepository(registry, repository)
  if (tag !== null && !tagPattern.test(tag)) {
    refuse('its tag must have at most 128 characters and not begin with "." or "-"')
  }
  const name = `${registry}/${repository}`
  const reference =
    digest === null
      ? { registry, repository, tag: tag ?? 'latest', digest, canonical: `${name}:${tag ?? 'latest'}` }
      : { registry, repository, tag: null, digest, canonical: `${name}@${digest}` }
  return reference
}

/** As every registry client does: a first part that contains a dot, or is `localhost`, is a host. */
function splitRegistry(path: string): { registry: string; repository: string } {
  const slash = path.indexOf('/')
  const first = path.slice(0, Math.max(slash, 0))
  const isHost = slash > 0 && (first.includes('.') || first === 'localhost')
  // Docker Hub has an older name; a policy must see one name for one registry.
  const registry = isHost && first !== 'index.docker.io' ? first : defaultRegistry
  const rest = isHost ? path.slice(slash + 1) : path
  const repository = registry === defaultRegistry && !rest.includes('/') ? `library/${rest}` : rest
  return { registry, repository }
}

function checkRegistry(registry: string): void {
  if (registry === builtInRegistry) return
  const labels = registry.split('.')
  if (!labels.every((label) => label.length <= 63 && hostLabel.test(label)) || labels.length < 2) {
    refuse('its registry must be a host name such as "ghcr.io"')
  }
  // Resolvers read a last label of digits, or of hexadecimal digits, as an IPv4 address: `127.1`, `10.0x1`.
  if (/^(?:\d+|0x[0-9a-f]*)$/.test(labels.at(-1) ?? '')) refuse('its registry must not be an IP address')
  if (privateSuffixes.some((suffix) => registry === suffix || registry.endsWith(`.${suffix}`))) {
    refuse('its registry is a private host')
  }
}

function checkRepository(registry: string, repository: string): void {
  const parts = repository.split('/')
  if (!parts.every((part) => pathPart.test(part))) {
    refuse('each part of its name must be letters and digits, joined by single ".", "_", "-" or "/"')
  }
  if (registry === builtInRegistry && parts.length !== 1) {
    refuse(`built-in images have names such as "${builtInRegistry}/debian:12"`)
  }
}

function refuse(reason: string): never {
  throw new InvalidImageReference(`This image reference cannot be used: ${reason}.`)
}
