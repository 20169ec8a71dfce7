import { z } from "zod";

/** Money, in bodies and answers. An amount is a decimal number as text: it is kept, computed and answered exactly. */
const AMOUNT = /^(?:0|[1-9]\d{0,11})(?:\.\d{1,4})?$/;

export const amountInput = z
  .string()
  .regex(AMOUNT, "must be a decimal number of at most 12 digits and 4 decimals")
  .meta({ description: "A decimal number.", example: "19.90" });

/** As it is answered: a sum of two may be longer by a digit. */
export const amount = z
  .string()
  .regex(
    /^(?:0|[1-9]\d{0,12})(?:\.\d{1,4})?$/,
    "must be a decimal number of at most 13 digits and 4 decimals",
  )
  .meta({ description: "A decimal number.", example: "19.90" });

const CURRENCIES: ReadonlySet<string> = new Set(Intl.supportedValuesOf("currency"));

const CODE = { description: "ISO 4217.", example: "EUR" };

export const currencyInput = z
  .string()
  .refine((code) => CURRENCIES.has(code), "must be a currency code of ISO 4217")
  .meta(CODE);

/** As it is answered: what is no currency any more was one when it was written. */
export const currency = z.string().meta(CODE);
