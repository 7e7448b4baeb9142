// The messages of the service that looks at files and watches folders.

import {
  bool,
  type Described,
  enumeration,
  int64,
  list,
  message,
  string,
  textMap,
  uint32,
} from './describe.ts'

const path = string(1)
const watched = { path, recursive: bool(2), include_entry: bool(3), allow_network_mounts: bool(4) }
const entry = message('EntryInfo', 1)

export const filesystemService: Described = {
  package: 'filesystem',
  service: 'Filesystem',
  methods: {
    Stat: {},
    MakeDir: {},
    Move: {},
    ListDir: {},
    Remove: {},
    WatchDir: { streams: 'answers' },
    CreateWatcher: {},
    GetWatcherEvents: {},
    RemoveWatcher: {},
  },
  enums: {
    FileType: {
      FILE_TYPE_UNSPECIFIED: 0,
      FILE_TYPE_FILE: 1,
      FILE_TYPE_DIRECTORY: 2,
      FILE_TYPE_SYMLINK: 3,
    },
    EventType: {
      EVENT_TYPE_UNSPECIFIED: 0,
      EVENT_TYPE_CREATE: 1,
      EVENT_TYPE_WRITE: 2,
      EVENT_TYPE_REMOVE: 3,
      EVENT_TYPE_RENAME: 4,
      EVENT_TYPE_CHMOD: 5,
    },
  },
  messages: {
    EntryInfo: {
      name: string(1),
      type: enumeration('FileType', 2),
      path: string(3),
      size: int64(4),
      mode: uint32(5),
      permissions: string(6),
      owner: string(7),
      group: string(8),
      modified_time: message('.google.protobuf.Timestamp', 9),
      symlink_target: string(10),
      metadata: textMap(11),
    },
    FilesystemEvent: { name: string(1), type: enumeration('EventType', 2), entry: message('EntryInfo', 3) },
    WatchStarted: {},
    KeepAlive: {},
    StatRequest: { path },
    StatResponse: { entry },
    MakeDirRequest: { path },
    MakeDirResponse: { entry },
    MoveRequest: { source: string(1), destination: string(2) },
    MoveResponse: { entry },
    ListDirRequest: { path, depth: uint32(2) },
    ListDirResponse: { entries: list(entry) },
    RemoveRequest: { path },
    RemoveResponse: {},
    WatchDirRequest: watched,
    WatchDirResponse: {
      start: message('WatchStarted', 1),
      filesystem: message('FilesystemEvent', 2),
      keepalive: message('KeepAlive', 3),
    },
    CreateWatcherRequest: watched,
    CreateWatcherResponse: { watcher_id: string(1) },
    GetWatcherEventsRequest: { watcher_id: string(1) },
    GetWatcherEventsResponse: { events: list(message('FilesystemEvent', 1)) },
    RemoveWatcherRequest: { watcher_id: string(1) },
    RemoveWatcherResponse: {},
  },
}
