// The messages of the service that starts and follows processes.

import {
  bool,
  bytes,
  type Described,
  enumeration,
  list,
  message,
  sint32,
  string,
  textMap,
  uint32,
} from './describe.ts'

const process = message('ProcessSelector', 1)

export const processService: Described = {
  package: 'process',
  service: 'Process',
  methods: {
    List: {},
    Connect: { streams: 'answers' },
    Start: { streams: 'answers' },
    Update: {},
    StreamInput: { streams: 'requests' },
    SendInput: {},
    SendSignal: {},
    CloseStdin: {},
  },
  enums: {
    Signal: { SIGNAL_UNSPECIFIED: 0, SIGNAL_SIGKILL: 9, SIGNAL_SIGTERM: 15 },
  },
  messages: {
    Size: { cols: uint32(1), rows: uint32(2) },
    PTY: { size: message('Size', 1) },
    ProcessConfig: { cmd: string(1), args: list(string(2)), envs: textMap(3), cwd: string(4) },
    ProcessSelector: { pid: uint32(1), tag: string(2) },
    ProcessInfo: { config: message('ProcessConfig', 1), pid: uint32(2), tag: string(3) },
    ProcessInput: { stdin: bytes(1), pty: bytes(2) },
    StartEvent: { pid: uint32(1) },
    DataEvent: { stdout: bytes(1), stderr: bytes(2), pty: bytes(3) },
    EndEvent: { exit_code: sint32(1), exited: bool(2), status: string(3), error: string(4) },
    KeepAlive: {},
    ProcessEvent: {
      start: message('StartEvent', 1),
      data: message('DataEvent', 2),
      end: message('EndEvent', 3),
      keepalive: message('KeepAlive', 4),
    },
    ListRequest: {},
    ListResponse: { processes: list(message('ProcessInfo', 1)) },
    StartRequest: {
      process: message('ProcessConfig', 1),
      pty: message('PTY', 2),
      tag: string(3),
      stdin: bool(4),
    },
    StartResponse: { event: message('ProcessEvent', 1) },
    ConnectRequest: { process },
    ConnectResponse: { event: message('ProcessEvent', 1) },
    UpdateRequest: { process, pty: message('PTY', 2) },
    UpdateResponse: {},
    SendInputRequest: { process, input: message('ProcessInput', 2) },
    SendInputResponse: {},
    StreamInputStart: { process },
    StreamInputData: { input: message('ProcessInput', 2) },
    StreamInputRequest: {
      start: message('StreamInputStart', 1),
      data: message('StreamInputData', 2),
      keepalive: message('KeepAlive', 3),
    },
    StreamInputResponse: {},
    SendSignalRequest: { process, signal: enumeration('Signal', 2) },
    SendSignalResponse: {},
    CloseStdinRequest: { process },
    CloseStdinResponse: {},
  },
}
