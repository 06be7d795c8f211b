// All members of Link, for the files that instantiate it.
#pragma once

#include "drivers/link/impl/dump.hpp"
#include "drivers/link/impl/handshake.hpp"
#include "drivers/link/impl/invariants.hpp"
#include "drivers/link/impl/peers.hpp"
#include "drivers/link/impl/receive.hpp"
#include "drivers/link/impl/recovery.hpp"
#include "drivers/link/impl/send.hpp"
