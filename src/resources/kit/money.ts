import { z } from "zod";

/** A monetary amount as a decimal string, because floating-point numbers would be rounded. */
const AMOUNT = /^(?:0|[1-9]\d{0,11})(?:\.\d{1,4})?$/;

export const amountInput = z
  .string()
  .regex(AMOUNT, "must be a decimal number with at most 12 digits before and 4 after the point")
  .meta({ description: "Amount as a decimal string, with up to 4 decimals.", example: "19.90" });

/** Amount in a response. It may have one more digit than an amount in a request, because it can be a sum of two amounts. */
export const amount = z
  .string()
  .regex(
    /^(?:0|[1-9]\d{0,12})(?:\.\d{1,4})?$/,
    "must be a decimal number with at most 13 digits before and 4 after the point",
  )
  .meta({ description: "Amount as a decimal string, with up to 4 decimals.", example: "19.90" });

const CURRENCIES: ReadonlySet<string> = new Set(Intl.supportedValuesOf("currency"));

const CODE = { description: "Currency code (ISO 4217).", example: "EUR" };

export const currencyInput = z
  .string()
  .refine((code) => CURRENCIES.has(code), "must be an ISO 4217 currency code, such as EUR")
  .meta(CODE);

/** Currency in a response. Accepts any code, because a stored currency may have been withdrawn later. */
export const currency = z.string().meta(CODE);
