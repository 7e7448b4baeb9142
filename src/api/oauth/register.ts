// Dynamic client registration: `POST /oauth/register`.

import { SECOND } from '../../lib/clock.ts'
import { registerClient } from '../../domain/oauth/register.ts'
import type { Endpoint } from './endpoint.ts'

/** RFC 7591. Returns the registered values, which may differ from the requested ones. */
export const registerEndpoint: Endpoint = {
  method: 'POST',
  path: '/oauth/register',
  accepts: 'json',
  answer: async (app, { json, peer, tokenGate }) => {
    tokenGate.register(peer)
    const { id, name, uri, icon, redirectUris } = await registerClient(app, { metadata: json, peer })
    return {
      status: 201,
      json: {
        client_id: id,
        client_id_issued_at: Math.floor(app.clock.now().getTime() / SECOND),
        ...(name === null ? {} : { client_name: name }),
        ...(uri === null ? {} : { client_uri: uri }),
        ...(icon === null ? {} : { logo_uri: icon }),
        redirect_uris: redirectUris,
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        token_endpoint_auth_method: 'none',
        scope: 'units',
      },
    }
  },
}
