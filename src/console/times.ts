// Times, dates and numbers as people read them. The server's clock is UTC, and the pages say so.
import { html, type Html } from './html.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
export const DAY_MS = 24 * HOUR_MS

const dayFormat = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' })
const shortDayFormat = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' })
const minuteFormat = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' })
const numberFormat = new Intl.NumberFormat('en-GB')

/** 5 December 2030 */
export function longDay(time: number): string {
  return dayFormat.format(time)
}

/** 5 Dec */
export function shortDay(time: number): string {
  return shortDayFormat.format(time)
}

/** 14:00 */
export function clockTime(time: number): string {
  return new Date(time).toISOString().slice(11, 16)
}

export function day(time: number): Html {
  return timeElement(time, longDay(time))
}

export function minute(time: number): Html {
  return timeElement(time, `${minuteFormat.format(time)} UTC`)
}

/** "5 minutes ago", with the exact time to be hovered. */
export function ago(time: number, now: number): Html {
  return timeElement(time, sinceWords(now - time) ?? longDay(time))
}

export function count(value: number): string {
  return numberFormat.format(value)
}

/** "1 call", "3 calls" */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`
}

function timeElement(time: number, text: string): Html {
  return html`<time datetime="${new Date(time).toISOString()}" title="${minuteFormat.format(time)} UTC">${text}</time>`
}

function sinceWords(ms: number): string | undefined {
  if (ms < MINUTE_MS) return 'just now'
  if (ms < HOUR_MS) return `${counted(Math.floor(ms / MINUTE_MS), 'minute')} ago`
  if (ms < DAY_MS) return `${counted(Math.floor(ms / HOUR_MS), 'hour')} ago`
  if (ms < 14 * DAY_MS) return `${counted(Math.floor(ms / DAY_MS), 'day')} ago`
  return undefined
}
