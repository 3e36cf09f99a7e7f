// The files that pages load: styles, scripts and the icon. None comes from another host.
import { hash } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Answer, Call, PageCall } from '../../http/call/call.ts'
import { readOwnFile } from '../../own-files.ts'

const TYPES = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
} as const

const FILES = {
  'adding.js': 'assets/adding.js',
  'console.css': 'assets/console.css',
  'console.js': 'assets/console.js',
  'icon.svg': 'assets/icon.svg',
  'list.js': 'assets/list.js',
  'reference.css': 'assets/reference.css',
  'reference.js': 'assets/reference.js',
  'scalar.js': 'vendor/scalar/standalone.js',
} as const

type AssetName = keyof typeof FILES

const compress = promisify(gzip)

interface Asset {
  plain: Buffer
  /** Part of the address. It changes with the content, so that a browser may cache the file forever. */
  version: string
  /** Made when the file is first requested: the reference is large and rarely needed. */
  compressed?: Promise<Buffer>
}

const loaded = new Map<AssetName, Asset>()

export function assetAddress(name: AssetName): string {
  return `/assets/${name}?v=${load(name).version}`
}

/** Returns the answer to a request for a file; undefined if there is no such file. */
export function assetAnswer(call: PageCall): Promise<Answer> | undefined {
  const { name = '' } = call.parameters
  return Object.hasOwn(FILES, name) ? answerWith(name as AssetName, call) : undefined
}

async function answerWith(name: AssetName, call: PageCall): Promise<Answer> {
  const asset = load(name)
  const type = TYPES[name.split('.')[1] as keyof typeof TYPES]
  const isCurrent = new URLSearchParams(call.query).get('v') === asset.version
  const isCompressed = acceptsGzip(call)
  const body = isCompressed ? await (asset.compressed ??= compress(asset.plain)) : asset.plain
  const encoding = isCompressed ? ['Content-Encoding', 'gzip'] : []
  return {
    status: 200,
    // A request for another version gets the current file, which must not be cached under that address.
    cache: isCurrent ? 'public, max-age=31536000, immutable' : 'no-cache',
    headers: ['Content-Type', type, 'Content-Length', String(body.length), 'Vary', 'Accept-Encoding', ...encoding],
    body,
  }
}

/** A weight of 0 means not accepted. */
const GZIP = /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?(?![.\d]))/i

export function acceptsGzip({ request }: Call): boolean {
  return GZIP.test(request.headers['accept-encoding'] ?? '')
}

function load(name: AssetName): Asset {
  const present = loaded.get(name)
  if (present !== undefined) return present
  const plain = readOwnFile(`console/${FILES[name]}`)
  const asset = { plain, version: hash('sha256', plain).slice(0, 12) }
  loaded.set(name, asset)
  return asset
}
