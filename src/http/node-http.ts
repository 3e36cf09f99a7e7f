// node:http as require gives it. An import reads every one of its exports, and some of those load a whole HTTP client
// that nobody here needs: 40 ms of a start of 300.
import { createRequire } from 'node:module'

export const { createServer, STATUS_CODES } = createRequire(import.meta.url)('node:http') as typeof import('node:http')
