import type { Finding } from "../../../lib/errors.ts";
import { err, ok, type Result } from "../../../lib/result.ts";

/** A country code and up to 15 digits in all (ITU-T E.164, section 6.2.1). */
const E164 = /^\+\d{1,15}$/;

/**
 * The number as E.164, if it is one of that country's: valid by its numbering plan, written nationally or internationally.
 *
 * The plans come in with the first number that is asked about: about 20 ms and 2 MiB, which a gateway without telephony never
 * needs. The full ones: the smaller set knows how long numbers are, not which there are.
 */
export async function toE164(countryCode: string, phoneNumber: string): Promise<Result<string, Finding>> {
  const plans = await import("libphonenumber-js/max");
  if (!plans.isSupportedCountry(countryCode))
    return err({ path: "countryCode", message: "is not a country that has phone numbers" });
  const number = plans.parsePhoneNumberFromString(phoneNumber, {
    defaultCountry: countryCode,
    extract: false,
  });
  if (!number || number.ext !== undefined)
    return err({ path: "phoneNumber", message: "is not a phone number, and nothing but one" });
  const isOfCountry = number.countryCallingCode === plans.getCountryCallingCode(countryCode);
  // Where countries share a calling code, the library takes the first that fits: it is asked about this one.
  number.country = countryCode;
  if (!isOfCountry || !number.isValid() || !E164.test(number.number))
    return err({ path: "phoneNumber", message: `is not a valid phone number of ${countryCode}` });
  return ok(number.number);
}
