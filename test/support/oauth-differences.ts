// Where Berth answers otherwise than oidc-provider, and why. The test fails for a difference that is not here, and for one that is
// here and is none.

export type Difference = { ours: string; theirs: string; reason: string }

const twice: Difference = {
  ours: 'a page, 4xx',
  theirs: 'tells the program: invalid_request',
  reason:
    'What is there twice can be read as the one or the other: nothing of it is trusted, nor where it says to go.',
}
const otherMode: Difference = {
  ours: 'tells the program: invalid_request',
  theirs: 'asks the person',
  reason:
    'An answer goes by the query alone: programs that Berth knows read no other, and fewer places hold a code.',
}
const lenient = (reason: string): Difference => ({
  ours: '2xx',
  theirs: '4xx invalid_client_metadata',
  reason,
})
const ownMetadata = lenient(
  'It is answered what is so here, as RFC 7591 3.2.1 allows: real programs ask for what they do not need.',
)
const shownText = lenient('It is text that is left out where it is none; who registers loses nothing by it.')
const noJson: Difference = {
  ours: '4xx invalid_client_metadata',
  theirs: '4xx invalid_request',
  reason: 'RFC 7591 3.2.2 has one error for metadata that is none.',
}
const headerCredentials: Difference = {
  ours: '4xx invalid_client',
  theirs: '4xx invalid_request',
  reason:
    'RFC 6749 5.2 answers an Authorization header with 401 and invalid_client; programs here have no secret.',
}

/** By endpoint and fault (oauth-requests.ts). */
export const differences: Record<string, Difference> = {
  'authorize: redirect_uri twice': twice,
  'authorize: response_type twice': twice,
  'authorize: state twice': twice,
  'authorize: scope twice': twice,
  'authorize: code_challenge twice': twice,
  'authorize: response_mode fragment': otherMode,
  'authorize: response_mode form_post': otherMode,
  'authorize: response_mode unknown': {
    ours: 'tells the program: invalid_request',
    theirs: 'tells the program: unsupported_response_mode',
    reason: 'RFC 6749 has no such code; invalid_request is the one for a value that is not supported.',
  },
  'authorize: scope unknown': {
    ours: 'tells the program: invalid_scope',
    theirs: 'asks the person',
    reason: 'A token without any scope would be good for nothing: RFC 6749 4.1.2.1.',
  },
  'authorize: resource that is the service': {
    ours: 'asks the person',
    theirs: 'tells the program: invalid_target',
    reason: 'Tokens are good for the API too, so the base URL means the same service.',
  },
  'authorize: prompt none': {
    ours: 'tells the program: interaction_required',
    theirs: 'tells the program: login_required',
    reason: 'Consent is always asked, so whether somebody is signed in is not looked at, and not told.',
  },
  'authorize: prompt unknown': {
    ours: 'asks the person',
    theirs: 'tells the program: invalid_request',
    reason: 'It is of OpenID; what is not known is ignored (RFC 6749 3.1).',
  },
  'authorize: nonce that nobody asked for': {
    ours: 'asks the person',
    theirs: 'tells the program: invalid_request',
    reason: 'It is of OpenID; what is not known is ignored (RFC 6749 3.1).',
  },
  'code: code_verifier missing': {
    ours: '4xx invalid_request',
    theirs: '4xx invalid_grant',
    reason: 'It is a parameter that every request needs: RFC 6749 5.2.',
  },
  'code: code_verifier short': {
    ours: '4xx invalid_grant',
    theirs: '4xx invalid_request',
    reason: 'No verifier that is too short fits the challenge: RFC 7636 4.6.',
  },
  'code: a client secret in a header': headerCredentials,
  'code: a bearer token in a header': headerCredentials,
  'code: resource of somebody else': {
    ours: '4xx invalid_target',
    theirs: '4xx invalid_grant',
    reason:
      'RFC 8707 2.2 has this code for a resource that tokens cannot be for, whatever the code is worth.',
  },
  'refresh: scope more': {
    ours: '2xx',
    theirs: '4xx invalid_scope',
    reason:
      'There is one scope; another one beside it is ignored, as in the request to connect, and the answer says "units".',
  },
  'revoke: client_id unknown': {
    ours: '2xx, the tokens go on',
    theirs: '4xx invalid_client',
    reason:
      'A program that is not known here has no token to give back, and a program that tries learns nothing.',
  },
  'register: redirect_uris ["https://*.example/callback"]': {
    ours: '4xx invalid_redirect_uri',
    theirs: '2xx',
    reason: 'A wildcard would never match: the program that registers it should hear so.',
  },
  'register: redirect_uris ["https://app.example/callback","javascript:alert(1)"]': {
    ours: '2xx',
    theirs: '4xx invalid_redirect_uri',
    reason: 'What no answer may go to is dropped: editors register several kinds at once, and need one.',
  },
  'register: client_name ""': shownText,
  'register: client_uri "javascript:alert(1)"': shownText,
  'register: token_endpoint_auth_method "client_secret_basic"': ownMetadata,
  'register: token_endpoint_auth_method "x"': ownMetadata,
  'register: grant_types ["authorization_code","implicit"]': ownMetadata,
  'register: grant_types ["urn:ietf:params:oauth:grant-type:device_code"]': ownMetadata,
  'register: response_types ["token"]': ownMetadata,
  'register: scope "units admin"': ownMetadata,
  'register: an array': noJson,
  'register: broken JSON': noJson,
}
