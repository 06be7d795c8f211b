/* Stands in for DPDK's drivers/bus/vdev/bus_vdev_driver.h; see dev_driver.h. Mirrors struct
 * rte_vdev_device and struct rte_vdev_driver of DPDK 22.11. */
#ifndef BUS_VDEV_DRIVER_H
#define BUS_VDEV_DRIVER_H

#include <dev_driver.h>
#include <rte_bus_vdev.h>
#include <rte_devargs.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rte_vdev_device {
  RTE_TAILQ_ENTRY(rte_vdev_device) next;
  struct rte_device device;
};

/* EAL calls probe for each device whose name begins with driver.name, and remove when the device is
 * unplugged or EAL cleans up. */
struct rte_vdev_driver {
  RTE_TAILQ_ENTRY(rte_vdev_driver) next;
  struct rte_driver driver;
  int (*probe)(struct rte_vdev_device*);
  int (*remove)(struct rte_vdev_device*);
  int (*dma_map)(struct rte_vdev_device*, void*, uint64_t, size_t);
  int (*dma_unmap)(struct rte_vdev_device*, void*, uint64_t, size_t);
  uint32_t drv_flags;
};

void rte_vdev_register(struct rte_vdev_driver* driver);
void rte_vdev_unregister(struct rte_vdev_driver* driver);

static inline const char* rte_vdev_device_name(const struct rte_vdev_device* dev) {
  return dev && dev->device.name ? dev->device.name : NULL;
}

static inline const char* rte_vdev_device_args(const struct rte_vdev_device* dev) {
  return dev && dev->device.devargs ? dev->device.devargs->args : "";
}

/* Registers the driver with EAL before main(), or when the shared library is loaded. */
#define RTE_PMD_REGISTER_VDEV(nm, vdrv) \
  RTE_INIT(vdrvinitfn_##vdrv) {         \
    (vdrv).driver.name = RTE_STR(nm);   \
    (vdrv).driver.alias = NULL;         \
    rte_vdev_register(&vdrv);           \
  }                                     \
  RTE_PMD_EXPORT_NAME(nm, __COUNTER__)

#ifdef __cplusplus
}
#endif

#endif
