// Parses the Link header (RFC 8288).

const LINK = /<([^<>]*)>((?:\s*;\s*[\w-]+\s*=\s*(?:"[^"]*"|[^\s",;]+))*)/g
const PARAMETER = /;\s*([\w-]+)\s*=\s*(?:"([^"]*)"|([^\s",;]+))/g

/** Returns the address of the first link with this relation, resolved against the address of the request. */
export function linkTo(relation: string, header: string | null, requestUrl: URL): URL | undefined {
  for (const [, target = '', parameters = ''] of (header ?? '').matchAll(LINK)) {
    if (relationsOf(parameters).includes(relation) && URL.canParse(target, requestUrl))
      return new URL(target, requestUrl)
  }
  return undefined
}

function relationsOf(parameters: string): string[] {
  for (const [, name = '', quoted, plain] of parameters.matchAll(PARAMETER)) {
    if (name.toLowerCase() === 'rel') return (quoted ?? plain ?? '').toLowerCase().split(/\s+/)
  }
  return []
}
