// The team's secrets in the words of this interface. One of ours belongs to the hosts to which its value goes, which a client
// of this interface does not say: so they are made elsewhere, and listed and deleted here.

import { notFound } from '../../../contract/errors.ts'
import type { Secret, SecretList } from '../../../contract/secret.ts'
import { type ControlAnswer, type ControlCall, perform } from './call.ts'

const toShown = ({ name, createdAt, updatedAt }: Secret) => ({
  secretID: name,
  name,
  createdAt,
  updatedAt,
  // Units always get the newest value.
  currentVersion: 1,
  metadata: {},
})

async function readAll(call: ControlCall): Promise<Secret[]> {
  return ((await perform(call, { route: 'GET /v1/secrets', input: {} })) as SecretList).secrets
}

export async function listSecrets(call: ControlCall): Promise<ControlAnswer> {
  return { status: 200, body: (await readAll(call)).map(toShown) }
}

export async function getSecret(call: ControlCall, name: string): Promise<ControlAnswer> {
  const found = (await readAll(call)).find((secret) => secret.name === name)
  if (!found) throw notFound('secret', name)
  return { status: 200, body: toShown(found) }
}

export async function deleteSecret(call: ControlCall, name: string): Promise<ControlAnswer> {
  await perform(call, { route: 'DELETE /v1/secrets/{name}', input: { params: { name } } })
  return { status: 204, body: null }
}
