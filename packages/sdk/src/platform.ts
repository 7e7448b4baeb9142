// Types of what every runtime has. TypeScript knows them with its library "dom" or with @types/node. A program that is
// compiled with neither gets `any` for them, and no error.

/** @ts-ignore */
export type AbortSignal = globalThis.AbortSignal
/** @ts-ignore */
export type Blob = globalThis.Blob
/** @ts-ignore */
export type Headers = globalThis.Headers
/** @ts-ignore */
export type ReadableStream<Chunk> = globalThis.ReadableStream<Chunk>
/** @ts-ignore */
export type RequestInit = globalThis.RequestInit
/** @ts-ignore */
export type Response = globalThis.Response
/** @ts-ignore */
export type WebSocket = globalThis.WebSocket
/** @ts-ignore */
export type WebSocketClass = typeof globalThis.WebSocket
