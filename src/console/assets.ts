// The files that pages load: styles, scripts and the icon. All are served from here, none from another host.
import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { type Answer, type PageCall, takesGzip } from '../http/call.ts'

const TYPES = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
} as const

const FILES = {
  'console.css': 'assets/console.css',
  'console.js': 'assets/console.js',
  'icon.svg': 'assets/icon.svg',
  'reference.css': 'assets/reference.css',
  'reference.js': 'assets/reference.js',
  'scalar.js': 'vendor/scalar/standalone.js',
} as const

type AssetName = keyof typeof FILES

const compress = promisify(gzip)

interface Asset {
  type: string
  plain: Buffer
  compressed: Buffer
}

const versions = new Map<AssetName, string>()
const loaded = new Map<AssetName, Promise<Asset>>()

/** Returns the address of a file, which changes with its content, so that a browser may cache it forever. */
export function assetAddress(name: AssetName): string {
  const version = versions.get(name) ?? hash('sha256', readFileSync(fileOf(name)), 'hex').slice(0, 12)
  versions.set(name, version)
  return `/assets/${name}?v=${version}`
}

export function isAsset(name: string): name is AssetName {
  return Object.hasOwn(FILES, name)
}

export async function assetAnswer(name: AssetName, call: PageCall): Promise<Answer> {
  const { type, plain, compressed } = await load(name)
  const isCurrent = assetAddress(name).endsWith(`=${new URLSearchParams(call.query).get('v')}`)
  const isCompressed = takesGzip(call)
  const body = isCompressed ? compressed : plain
  const encoding = isCompressed ? ['Content-Encoding', 'gzip'] : []
  return {
    status: 200,
    // The address of another version gets the current file, but may not cache it.
    cache: isCurrent ? 'public, max-age=31536000, immutable' : 'no-cache',
    headers: ['Content-Type', type, 'Content-Length', String(body.length), 'Vary', 'Accept-Encoding', ...encoding],
    body,
  }
}

/** Reads and compresses a file when it is first requested: the reference is large and rarely needed. */
function load(name: AssetName): Promise<Asset> {
  const present = loaded.get(name) ?? read(name)
  loaded.set(name, present)
  return present
}

async function read(name: AssetName): Promise<Asset> {
  const plain = await readFile(fileOf(name))
  return { type: TYPES[name.split('.')[1] as keyof typeof TYPES], plain, compressed: await compress(plain) }
}

function fileOf(name: AssetName): URL {
  return new URL(FILES[name], import.meta.url)
}
