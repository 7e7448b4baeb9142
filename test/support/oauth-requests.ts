// Requests to an authorization server, each with one fault or none, for two servers to answer: what is asked by a program that
// is registered with each, in words that mean its own there.

/** What a request of this server's program is made of. */
export type Own = {
  base: string
  clientId: string
  otherClientId: string
  redirectUri: string
  /** A code and tokens that nobody has used. */
  code: string
  access: string
  refresh: string
  verifier: string
  challenge: string
}

export type Fields = [name: string, value: string][]
export type Asked = { fields: Fields; headers?: Record<string, string>; body?: string }
export type Fault = { name: string; field: string; make: (asked: Asked, own: Own) => Asked }

const set = (field: string, what: string, value: (own: Own) => string): Fault => ({
  name: `${field} ${what}`,
  field,
  make: ({ fields, ...rest }, own) => ({
    ...rest,
    fields: [...fields.filter(([name]) => name !== field), [field, value(own)]],
  }),
})
const drop = (field: string): Fault => ({
  name: `${field} missing`,
  field,
  make: ({ fields, ...rest }) => ({ ...rest, fields: fields.filter(([name]) => name !== field) }),
})
const twice = (field: string): Fault => ({
  name: `${field} twice`,
  field,
  make: ({ fields, ...rest }) => ({
    ...rest,
    fields: [...fields, ...fields.filter(([name]) => name === field)],
  }),
})
const headers = (what: string, more: Record<string, string>): Fault => ({
  name: what,
  field: what,
  make: (asked) => ({ ...asked, headers: { ...asked.headers, ...more } }),
})

export type Endpoint = 'authorize' | 'code' | 'refresh' | 'revoke' | 'register'

/** As it should be. */
export const valid: Record<Endpoint, (own: Own) => Fields> = {
  authorize: (own) => [
    ['response_type', 'code'],
    ['client_id', own.clientId],
    ['redirect_uri', own.redirectUri],
    ['scope', 'units'],
    ['state', 'the state'],
    ['resource', `${own.base}/mcp`],
    ['code_challenge', own.challenge],
    ['code_challenge_method', 'S256'],
  ],
  code: (own) => [
    ['grant_type', 'authorization_code'],
    ['client_id', own.clientId],
    ['code', own.code],
    ['code_verifier', own.verifier],
    ['redirect_uri', own.redirectUri],
    ['resource', `${own.base}/mcp`],
  ],
  refresh: (own) => [
    ['grant_type', 'refresh_token'],
    ['client_id', own.clientId],
    ['refresh_token', own.refresh],
    ['resource', `${own.base}/mcp`],
  ],
  revoke: (own) => [
    ['client_id', own.clientId],
    ['token', own.refresh],
    ['token_type_hint', 'refresh_token'],
  ],
  register: () => [
    ['client_name', '"A program"'],
    ['redirect_uris', '["http://127.0.0.1:43210/callback"]'],
    ['token_endpoint_auth_method', '"none"'],
  ],
}

const json = (field: string, value: unknown): Fault =>
  set(field, JSON.stringify(value) ?? 'undefined', () => JSON.stringify(value))
const redirects = (...uris: unknown[]): Fault => json('redirect_uris', uris)

const unknownClient = 'client_00000000000000000000000000000000'

export const faults: Record<Endpoint, Fault[]> = {
  authorize: [
    drop('state'),
    drop('scope'),
    drop('resource'),
    drop('redirect_uri'),
    drop('client_id'),
    drop('response_type'),
    drop('code_challenge'),
    drop('code_challenge_method'),
    ...['client_id', 'redirect_uri', 'response_type', 'state', 'scope', 'code_challenge'].map(twice),
    set('client_id', 'unknown', () => unknownClient),
    set('redirect_uri', 'on another port', () => 'http://127.0.0.1:1/callback'),
    set('redirect_uri', 'with another path', ({ redirectUri }) => `${redirectUri}/more`),
    set('redirect_uri', 'with a query', ({ redirectUri }) => `${redirectUri}?more=1`),
    set('redirect_uri', 'with a fragment', ({ redirectUri }) => `${redirectUri}#more`),
    set('redirect_uri', 'of a site', () => 'https://evil.example/callback'),
    set('redirect_uri', 'of another name of this computer', () => 'http://localhost:43210/callback'),
    set('redirect_uri', 'that is a script', () => 'javascript:alert(1)'),
    set('redirect_uri', 'that is none', () => 'callback'),
    set('response_type', 'token', () => 'token'),
    set('response_type', 'id_token', () => 'id_token'),
    set('response_type', 'code token', () => 'code token'),
    set('response_type', 'unknown', () => 'x'),
    set('response_mode', 'query', () => 'query'),
    set('response_mode', 'fragment', () => 'fragment'),
    set('response_mode', 'form_post', () => 'form_post'),
    set('response_mode', 'unknown', () => 'x'),
    set('scope', 'with offline_access', () => 'units offline_access'),
    set('scope', 'unknown', () => 'admin'),
    set('scope', 'with an unknown one', () => 'units admin'),
    set('resource', 'of somebody else', () => 'https://evil.example/mcp'),
    set('resource', 'that is no URL', () => 'mcp'),
    set('resource', 'with a fragment', ({ base }) => `${base}/mcp#x`),
    set('resource', 'that is the service', ({ base }) => base),
    set('code_challenge', 'short', () => 'abc'),
    set('code_challenge', 'of other characters', () => '+'.repeat(43)),
    set('code_challenge_method', 'plain', () => 'plain'),
    set('code_challenge_method', 'unknown', () => 'S512'),
    set('prompt', 'none', () => 'none'),
    set('prompt', 'consent', () => 'consent'),
    set('prompt', 'unknown', () => 'x'),
    set('request', 'object', () => 'eyJhbGciOiJub25lIn0.e30.'),
    set('request_uri', 'elsewhere', () => 'https://evil.example/request'),
    set('nonce', 'that nobody asked for', () => 'n'),
    set('something', 'that nobody knows', () => 'x'),
  ],
  code: [
    ...['grant_type', 'client_id', 'code', 'code_verifier', 'redirect_uri', 'resource'].map(drop),
    ...['grant_type', 'client_id', 'code', 'code_verifier'].map(twice),
    set('grant_type', 'password', () => 'password'),
    set('grant_type', 'client_credentials', () => 'client_credentials'),
    set('grant_type', 'implicit', () => 'implicit'),
    set('grant_type', 'unknown', () => 'x'),
    set('client_id', 'unknown', () => unknownClient),
    set('client_id', "another program's", ({ otherClientId }) => otherClientId),
    set('code', 'unknown', () => 'x'),
    set('code', 'changed', ({ code }) => `${code.slice(0, -2)}${code.endsWith('AA') ? 'BB' : 'AA'}`),
    set('code', 'that is an access token', ({ access }) => access),
    set('code_verifier', 'of another request', () => 'v'.repeat(43)),
    set('code_verifier', 'short', () => 'v'),
    set('code_verifier', 'that is the challenge', ({ challenge }) => challenge),
    set('redirect_uri', 'other', () => 'http://127.0.0.1:1/callback'),
    set('resource', 'of somebody else', () => 'https://evil.example/mcp'),
    set('scope', 'more', () => 'units admin'),
    headers('a body in JSON', { 'content-type': 'application/json' }),
    headers('a client secret in a header', { authorization: 'Basic eDp5' }),
    headers('a bearer token in a header', { authorization: 'Bearer x' }),
  ],
  refresh: [
    ...['grant_type', 'client_id', 'refresh_token', 'resource'].map(drop),
    ...['client_id', 'refresh_token'].map(twice),
    set('client_id', 'unknown', () => unknownClient),
    set('client_id', "another program's", ({ otherClientId }) => otherClientId),
    set('refresh_token', 'unknown', () => 'x'),
    set('refresh_token', 'that is an access token', ({ access }) => access),
    set('refresh_token', 'that is a code', ({ code }) => code),
    set('resource', 'of somebody else', () => 'https://evil.example/mcp'),
    set('scope', 'the same', () => 'units'),
    set('scope', 'more', () => 'units admin'),
  ],
  revoke: [
    ...['client_id', 'token', 'token_type_hint'].map(drop),
    ...['client_id', 'token'].map(twice),
    set('client_id', 'unknown', () => unknownClient),
    set('client_id', "another program's", ({ otherClientId }) => otherClientId),
    set('token', 'unknown', () => 'x'),
    set('token', 'that is an access token', ({ access }) => access),
    set('token_type_hint', 'wrong', () => 'access_token'),
    set('token_type_hint', 'unknown', () => 'x'),
    headers('a body in JSON', { 'content-type': 'application/json' }),
  ],
  register: [
    drop('client_name'),
    drop('redirect_uris'),
    drop('token_endpoint_auth_method'),
    redirects(),
    redirects('https://app.example/callback'),
    redirects('http://app.example/callback'),
    redirects('http://localhost:1/callback'),
    redirects('http://[::1]/callback'),
    redirects('javascript:alert(1)'),
    redirects('data:text/html,x'),
    redirects('com.example.app:/callback'),
    redirects('cursor://anysphere.cursor-mcp/oauth/callback'),
    redirects('https://app.example/callback#x'),
    redirects('https://*.example/callback'),
    redirects('callback'),
    redirects(1),
    redirects('https://app.example/callback', 'javascript:alert(1)'),
    json('redirect_uris', 'https://app.example/callback'),
    json('client_name', 1),
    json('client_name', ''),
    json('client_uri', 'javascript:alert(1)'),
    json('logo_uri', 'http://app.example/logo.svg'),
    json('token_endpoint_auth_method', 'client_secret_basic'),
    json('token_endpoint_auth_method', 'x'),
    json('grant_types', ['authorization_code']),
    json('grant_types', ['authorization_code', 'implicit']),
    json('grant_types', ['urn:ietf:params:oauth:grant-type:device_code']),
    json('response_types', ['token']),
    json('application_type', 'web'),
    json('scope', 'units admin'),
    json('jwks_uri', 'http://169.254.169.254/'),
    json('software_statement', 'x'),
    { name: 'an array', field: 'body', make: (asked) => ({ ...asked, body: '[]' }) },
    { name: 'broken JSON', field: 'body', make: (asked) => ({ ...asked, body: '{' }) },
    headers('a form', { 'content-type': 'application/x-www-form-urlencoded' }),
  ],
}
