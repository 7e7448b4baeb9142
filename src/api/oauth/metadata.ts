// The metadata that programs read first: the authorization server of this resource (RFC 9728), and its features (RFC
// 8414). All URLs come from the configuration, never from the host a request names, which an attacker could choose.

import type { App } from '../../app.ts'
import { resourceOf } from '../../domain/oauth/resource.ts'
import type { Endpoint } from './endpoint.ts'

const RESOURCE = '/.well-known/oauth-protected-resource'
const cached = { 'cache-control': 'public, max-age=300' }

const baseOf = ({ config }: App) => config.publicUrl

const ofResource = (path: string): Endpoint => ({
  method: 'GET',
  path,
  accepts: 'nothing',
  answer: async (app) => ({
    status: 200,
    headers: cached,
    json: {
      resource: resourceOf(app.config.publicUrl),
      authorization_servers: [app.config.publicUrl],
      scopes_supported: ['units'],
      bearer_methods_supported: ['header'],
      resource_name: 'Berth',
    },
  }),
})

const ofServer: Endpoint = {
  method: 'GET',
  path: '/.well-known/oauth-authorization-server',
  accepts: 'nothing',
  answer: async (app) => ({
    status: 200,
    headers: cached,
    json: {
      issuer: app.config.publicUrl,
      authorization_endpoint: `${baseOf(app)}/oauth/authorize`,
      token_endpoint: `${baseOf(app)}/oauth/token`,
      revocation_endpoint: `${baseOf(app)}/oauth/revoke`,
      registration_endpoint: `${baseOf(app)}/oauth/register`,
      response_types_supported: ['code'],
      response_modes_supported: ['query'],
      grant_types_supported: ['authorization_code', 'refresh_token'],
      code_challenge_methods_supported: ['S256'],
      token_endpoint_auth_methods_supported: ['none'],
      revocation_endpoint_auth_methods_supported: ['none'],
      scopes_supported: ['units', 'offline_access'],
      authorization_response_iss_parameter_supported: true,
      client_id_metadata_document_supported: app.config.clientMetadata,
    },
  }),
}

export const metadataEndpoints: readonly Endpoint[] = [
  ofResource(RESOURCE),
  ofResource(`${RESOURCE}/mcp`),
  ofServer,
]
