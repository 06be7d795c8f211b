/* Stands in for DPDK's lib/eal/include/dev_driver.h where the distribution leaves the driver
 * headers out (Debian builds without enable_driver_sdk). Mirrors struct rte_driver and struct
 * rte_device of DPDK 22.11 (ABI DPDK_23), which does not change within that ABI; the driver
 * compares versions when it is probed (rawdev.hpp). Order and types of the fields are DPDK's:
 * change them only to follow another version. */
#ifndef DEV_DRIVER_H
#define DEV_DRIVER_H

#include <rte_common.h>
#include <rte_compat.h>
#include <rte_dev.h>
#include <rte_os.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rte_driver {
  RTE_TAILQ_ENTRY(rte_driver) next;
  const char* name;
  const char* alias;
};

struct rte_device {
  RTE_TAILQ_ENTRY(rte_device) next;
  const char* name;
  const char* bus_info;
  const struct rte_driver* driver;
  const struct rte_bus* bus;
  int numa_node;
  struct rte_devargs* devargs;
};

#ifdef __cplusplus
}
#endif

#endif
