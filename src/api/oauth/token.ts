// Exchanges codes and refresh tokens for tokens (RFC 6749 3.2), and revokes tokens (RFC 7009). Programs have no
// secret: the code or the token identifies them.

import type { App } from '../../app.ts'
import { OauthError } from '../../domain/oauth/errors.ts'
import { isForgotten, unknownClient } from '../../domain/oauth/find-client.ts'
import type { TokenAnswer } from '../../domain/oauth/families.ts'
import { redeemCode } from '../../domain/oauth/redeem.ts'
import { refreshTokens } from '../../domain/oauth/refresh.ts'
import { isOurResource } from '../../domain/oauth/resource.ts'
import { revokeToken } from '../../domain/oauth/revoke.ts'
import type { Endpoint, EndpointRequest } from './endpoint.ts'

const token: Endpoint = {
  method: 'POST',
  path: '/oauth/token',
  accepts: 'form',
  answer: async (app, request) => ({
    status: 200,
    json: await tokensFor(app, request),
    headers: { pragma: 'no-cache' },
  }),
}

const revoke: Endpoint = {
  method: 'POST',
  path: '/oauth/revoke',
  accepts: 'form',
  answer: async (app, request) => {
    const clientId = clientOf(request)
    const given = needed(request, 'token')
    request.tokenGate.enter({ peer: request.peer, clientId, presented: given })
    await revokeToken(app, { token: given, clientId })
    return { status: 200, json: {} }
  },
}

export const tokenEndpoints: readonly Endpoint[] = [token, revoke]

async function tokensFor(app: App, request: EndpointRequest): Promise<TokenAnswer> {
  const { field, peer, tokenGate } = request
  const grantType = needed(request, 'grant_type')
  const clientId = clientOf(request)
  if (!isOurResource(field('resource'), app.config.publicUrl)) {
    throw new OauthError('invalid_target', 'resource is not of this service.')
  }
  const isCode = grantType === 'authorization_code'
  if (!isCode && grantType !== 'refresh_token') {
    throw new OauthError('unsupported_grant_type', 'grant_type is authorization_code or refresh_token.')
  }
  const presented = needed(request, isCode ? 'code' : 'refresh_token')
  tokenGate.enter({ peer, clientId, presented })
  try {
    const answer = isCode
      ? await redeemCode(app, {
          code: presented,
          clientId,
          redirectUri: field('redirect_uri'),
          verifier: needed(request, 'code_verifier'),
        })
      : await refreshTokens(app, { refreshToken: presented, clientId })
    tokenGate.succeeded(answer.refresh_token)
    return answer
  } catch (error) {
    if (!(error instanceof OauthError)) throw error
    tokenGate.failed(peer)
    throw (await isForgotten(app, clientId)) ? unknownClient() : error
  }
}

function clientOf({ field, authorization }: EndpointRequest): string {
  if (authorization !== null) {
    throw new OauthError(
      'invalid_client',
      'Clients have no secret here: send client_id in the form, and no Authorization.',
    )
  }
  const clientId = field('client_id')
  if (clientId === null) throw new OauthError('invalid_request', 'client_id is missing.')
  return clientId
}

function needed({ field }: EndpointRequest, name: string): string {
  const value = field(name)
  if (value === null) throw new OauthError('invalid_request', `${name} is missing.`)
  return value
}
