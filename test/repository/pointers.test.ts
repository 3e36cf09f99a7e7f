// What comments and documents point to is there: files and constants, and each constant in the file that is named with it.
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'

const root = join(import.meta.dirname, '../..')
const read = (file: string) => readFileSync(join(root, file), 'utf8')
const COMMENTS = /\/\*.*?\*\/|(?<=^|\s)\/\/.*?$/gms
const codeOf = (file: string) => read(file).replaceAll(COMMENTS, '')
const commentsOf = (file: string) => (read(file).match(COMMENTS) ?? []).join('\n').replaceAll(/^\s*(?:\/\/|\*)/gm, '')

const ENDINGS = 'ts,js,sql,md,css,conf,cfg,yaml,service,socket,timer'
const FILES = globSync(['*.md', `{src,client,test,assurance,bin,deploy,docs}/**/*.{${ENDINGS}}`], {
  cwd: root,
  exclude: ['**/node_modules'],
})
const PATH = String.raw`(?:[\w.-]+\/)*[\w-]+(?:\.test)?\.(?:${ENDINGS.replaceAll(',', '|')})\b`
/** Returns the files that a path can mean: comments and documents leave out the folders that a reader knows. */
const namedBy = (path: string) => FILES.filter((file) => `/${file}`.endsWith(`/${path.replace(/^(?:\.+\/)+/, '')}`))

/** Constants of others. */
const FOREIGN = /^(?:SQLITE|NODE)_/
const known = new Set(
  FILES.filter((file) => /\.(?:ts|js|sql)$/.test(file)).flatMap((file) => codeOf(file).match(/\w+/g)),
)

const documents = globSync(['{README,CONTRIBUTING,SECURITY}.md', 'docs/*.md', '{assurance,client,deploy}/README.md'], {
  cwd: root,
})
const sources = globSync('src/**/*.ts', { cwd: root })
const inOneLine = (text: string) => text.replaceAll(/\s+/g, ' ')
const comments = sources.map(commentsOf).map(inOneLine)
const texts = [...documents.map(read).map(inOneLine), ...comments]

/** Returns what a pattern finds in comments and documents, with the groups that took part. */
function found(pattern: string, least: number, within = texts): string[][] {
  const all = within.flatMap((text) =>
    Array.from(text.matchAll(new RegExp(pattern, 'g')), (match) => match.filter(Boolean)),
  )
  assert.ok(all.length > least, `${all.length} found`)
  return all
}

it('A file that a comment or a document names is there', () => {
  const named = found(`(?<![\\w./:@*{}-])(?!Node\\.js|Bun\\.sql)${PATH}(?![\\w*-])`, 200)
  assert.deepEqual(
    named.filter(([path = '']) => namedBy(path).length === 0),
    [],
  )
})

it('A constant that a comment or a document names, and every name that a comment puts in backticks, is in the code', () => {
  const named = [
    ...found('\\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\\b|(?<=`)[A-Z][A-Z0-9]+(?=`)', 100),
    ...found('(?<=`)[a-z]\\w*[A-Z]\\w*(?=`)', 20, comments),
  ]
  assert.deepEqual(
    named.filter(([name = '']) => !known.has(name) && !FOREIGN.test(name)),
    [],
  )
})

it('A name that a comment or a document says is in a file, is in that file', () => {
  const named = [
    ...found(`\`(\\w+)\` (?:in|of|from|\\() ?[[\`]*(${PATH})`, 10),
    ...found(`\\b([A-Z][A-Z0-9_]+) (?:in|of|from) [[\`]*(${PATH})`, -1),
    ...found(`(${PATH})\`?,(?: an entry)? in \`(\\w+)\``, 3).map(([all, path, name]) => [all, name, path]),
  ]
  const isThere = ([, name, path]: (string | undefined)[]) =>
    namedBy(path!).some((file) => new RegExp(`\\b${name}\\b`).test(codeOf(file)))
  assert.deepEqual(
    named.filter((pointer) => !isThere(pointer)),
    [],
  )
})
