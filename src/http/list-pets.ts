// listPets: a page of animals, newest first (spec, section 4.1).
import { Refusal, Refused } from '../contract/errors.ts'
import { nextPageQuery, parseListQuery } from '../contract/list-query.ts'
import { renderPets } from '../contract/pets.ts'
import { type Read, rendered } from './answer-cache.ts'
import type { HandlerParts } from './handler.ts'
import { parseQueryString } from './query-string.ts'

export function listPets({ store, base }: HandlerParts): Read {
  return async (route) => {
    const query = parseListQuery(parseQueryString(route.query))
    if (query instanceof Refused) return new Refusal('invalid_parameter', query.message)
    // One animal more than asked for shows whether a page follows.
    const found = await store.pets.list({ ...query, limit: query.limit + 1 })
    const page = found.slice(0, query.limit)
    const json = renderPets(page)
    if (found.length === page.length) return rendered(route, json)
    return rendered(route, json, ['Link', `<${base}/pets?${nextPageQuery(query, page.at(-1)!.id)}>; rel="next"`])
  }
}
