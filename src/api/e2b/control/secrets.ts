// The team's secrets in the words of this interface. One of ours belongs to the hosts to which its value goes, for which this
// interface has no word: they stand in the metadata.

import { z } from 'zod'
import { conflict, notFound } from '../../../contract/errors.ts'
import type { Secret, SecretAnswer, SecretList } from '../../../contract/secret.ts'
import { type ControlAnswer, type ControlCall, perform, readJson } from './call.ts'

/** Of a secret whose hosts were not said: a name that leads nowhere (RFC 2606), so that its value goes to no host. */
const NO_HOSTS = ['hosts-not-set.invalid']

const metadataSchema = z.strictObject({ hosts: z.string().optional() }, { error: 'must be hosts alone' })
const createSchema = z.object({ name: z.string(), value: z.string(), metadata: metadataSchema.nullish() })
const updateSchema = z.object({ value: z.string(), metadata: metadataSchema.nullish() })

const toShown = ({ name, hosts, createdAt, updatedAt }: Secret) => ({
  secretID: name,
  name,
  createdAt,
  updatedAt,
  // Units always get the newest value.
  currentVersion: 1,
  metadata: hosts.every((host) => NO_HOSTS.includes(host)) ? {} : { hosts: hosts.join(',') },
})

async function readAll(call: ControlCall): Promise<Secret[]> {
  return ((await perform(call, { route: 'GET /v1/secrets', input: {} })) as SecretList).secrets
}

export async function listSecrets(call: ControlCall): Promise<ControlAnswer> {
  return { status: 200, body: (await readAll(call)).map(toShown) }
}

export async function getSecret(call: ControlCall, name: string): Promise<ControlAnswer> {
  return { status: 200, body: toShown(await find(call, name)) }
}

async function find(call: ControlCall, name: string): Promise<Secret> {
  const found = (await readAll(call)).find((secret) => secret.name === name)
  if (!found) throw notFound('secret', name)
  return found
}

export async function createSecret(call: ControlCall): Promise<ControlAnswer> {
  const { name, value, metadata } = await readJson(call, createSchema)
  if ((await readAll(call)).some((secret) => secret.name === name))
    throw conflict(`There is a secret "${name.slice(0, 100)}" already.`)
  return { status: 201, body: await put(call, name, { value, hosts: hostsOf(metadata) }) }
}

/** Where it goes stays, unless that is said too. */
export async function updateSecret(call: ControlCall, name: string): Promise<ControlAnswer> {
  const { value, metadata } = await readJson(call, updateSchema)
  const { hosts, methods, paths } = await find(call, name)
  const body = { value, hosts: metadata?.hosts === undefined ? hosts : hostsOf(metadata), methods, paths }
  return { status: 200, body: await put(call, name, body) }
}

function hostsOf(metadata: z.output<typeof metadataSchema> | null | undefined): string[] {
  return metadata?.hosts?.split(',').map((host) => host.trim()) ?? NO_HOSTS
}

async function put(call: ControlCall, name: string, body: object): Promise<object> {
  const input = { params: { name }, body }
  const { secret } = (await perform(call, { route: 'PUT /v1/secrets/{name}', input })) as SecretAnswer
  return toShown(secret)
}

export async function deleteSecret(call: ControlCall, name: string): Promise<ControlAnswer> {
  await perform(call, { route: 'DELETE /v1/secrets/{name}', input: { params: { name } } })
  return { status: 204, body: null }
}
