// What the descriptions of several recipes say.

export const ADDRESS_FOR_UNITS = 'The address for units of the team.'
export const PASSWORD_OF_USER = 'The password of the user.'
export const USER_WITH_ALL_RIGHTS = 'The user with all rights.'
export const FROM_DOCKER_HUB = 'Its image comes from Docker Hub: Debian has none.'
export const HAS_PLACEHOLDER = 'The unit has a placeholder instead.'
export const LISTENS_IN_PORT = 'It must listen on the port in PORT.'
export const FILES_OF_NODE = 'The files of the application, with package.json if it has one.'
